// Package testoverload simulates a service of known capacity that gets more requests than it can
// answer, with a limiter in front of it, in virtual time.
//
// The service has some servers and one queue, first come, first served. Requests come at random
// (Poisson arrivals). A client waits for Timeout; the service answers nevertheless, but nobody
// needs the answer any more.
package testoverload

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/overload"
)

// Timeout is how long a client waits.
const Timeout = time.Second

// Limiter is what limits the requests in flight. It may be nil.
type Limiter interface {
	// Acquire returns false if a request is denied. Otherwise, release is called when it
	// is answered.
	Acquire(now time.Duration, p overload.Priority) (release func(now, took time.Duration, ok bool), allowed bool)
}

// World is a service and its load, by the time since the start.
type World struct {
	Servers func(t time.Duration) int
	Service func(t time.Duration, r *rand.Rand) time.Duration // how long a request takes a server
	Rate    func(t time.Duration) float64                     // requests per second
	Length  time.Duration
	From    time.Duration // when the measurement begins

	// Mix is the share of the requests of each priority. Default all are normal.
	Mix [overload.Priorities]float64

	// Advance is called before anything happens, with the time of it. Default none.
	Advance func(t time.Duration)
}

// Result is what was measured.
type Result struct {
	Offered, Good, Denied     int
	OfferedInAll, DeniedInAll int             // also before the measurement began
	Took                      []time.Duration // of answered requests, in order of size
	By                        [overload.Priorities]Share
}

// Share is what became of the requests of a priority, without those that might still be answered
// in time at the end.
type Share struct{ Offered, Good, Denied int }

// Lost is the share of requests that had no answer in time.
func (s Share) Lost() float64 { return float64(s.Offered-s.Good) / float64(max(1, s.Offered)) }

// Quantile of the time that answered requests took.
func (r *Result) Quantile(q float64) time.Duration {
	if len(r.Took) == 0 {
		return 0
	}
	return r.Took[min(len(r.Took)-1, int(q*float64(len(r.Took))))]
}

type request struct {
	began    time.Duration
	priority overload.Priority
	release  func(now, took time.Duration, ok bool)
}

type answer struct {
	at time.Duration
	r  *request
}

// Run simulates.
func Run(w World, l Limiter, seed uint64) Result {
	s := simulation{World: w, limiter: l, random: rand.New(rand.NewPCG(seed, 1))}
	var arrival time.Duration
	for {
		now := arrival
		answered := len(s.busy) > 0 && s.busy[0].at < arrival
		if answered {
			now = s.busy[0].at
		}
		if now > w.Length {
			break
		}
		if w.Advance != nil {
			w.Advance(now)
		}
		if answered {
			s.answer(now, s.busy[0].r)
			s.busy = s.busy[1:]
		} else {
			s.arrive(now)
			arrival += time.Duration(s.random.ExpFloat64() / w.Rate(now) * 1e9)
		}
		for len(s.queue) > 0 && len(s.busy) < w.Servers(now) {
			at := now + w.Service(now, s.random)
			next, _ := slices.BinarySearchFunc(s.busy, at, func(a answer, at time.Duration) int { return cmp.Compare(a.at, at) })
			s.busy = slices.Insert(s.busy, next, answer{at, s.queue[0]})
			s.queue = s.queue[1:]
		}
	}
	for _, r := range s.queue {
		s.leave(r)
	}
	for _, a := range s.busy {
		s.leave(a.r)
	}
	slices.Sort(s.Took)
	return s.Result
}

// leave forgets a request that might still be answered in time.
func (s *simulation) leave(r *request) {
	if r.began >= s.From && s.Length-r.began < Timeout {
		s.By[r.priority].Offered--
	}
}

type simulation struct {
	World
	Result
	limiter Limiter
	random  *rand.Rand
	queue   []*request
	busy    []answer // one for each busy server, in the order of time
}

func (s *simulation) arrive(now time.Duration) {
	var release func(now, took time.Duration, ok bool)
	allowed, priority := true, s.priority()
	if s.limiter != nil {
		release, allowed = s.limiter.Acquire(now, priority)
	}
	s.OfferedInAll++
	if !allowed {
		s.DeniedInAll++
	}
	if now >= s.From {
		s.Offered++
		s.By[priority].Offered++
		if !allowed {
			s.Denied++
			s.By[priority].Denied++
		}
	}
	if allowed {
		s.queue = append(s.queue, &request{now, priority, release})
	}
}

// priority draws one.
func (s *simulation) priority() overload.Priority {
	if s.Mix == ([overload.Priorities]float64{}) {
		return overload.Normal
	}
	x := s.random.Float64()
	for p, share := range s.Mix {
		if x -= share; x < 0 {
			return overload.Priority(p)
		}
	}
	return overload.Critical
}

func (s *simulation) answer(now time.Duration, r *request) {
	took := now - r.began
	if r.release != nil {
		r.release(now, took, took < Timeout)
	}
	if now < s.From {
		return
	}
	s.Took = append(s.Took, took)
	if took < Timeout {
		s.Good++
		if r.began >= s.From {
			s.By[r.priority].Good++
		}
	}
}
