// Package testoverload simulates a service of known capacity that gets more requests than it can
// answer, with a limiter in front of it, in virtual time.
//
// The service has some servers and one queue, first come, first served. Requests come at random
// (Poisson arrivals). A client waits for Timeout; the service answers nevertheless, but nobody
// needs the answer any more.
package testoverload

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

// Timeout is how long a client waits.
const Timeout = time.Second

// Limiter is what limits the requests in flight. It may be nil.
type Limiter interface {
	// Acquire returns false if a request is denied. Otherwise, release is called when it
	// is answered.
	Acquire(now time.Duration) (release func(now, took time.Duration, ok bool), allowed bool)
}

// World is a service and its load, by the time since the start.
type World struct {
	Servers func(t time.Duration) int
	Service func(t time.Duration, r *rand.Rand) time.Duration // how long a request takes a server
	Rate    func(t time.Duration) float64                     // requests per second
	Length  time.Duration
	From    time.Duration // when the measurement begins

	// Advance is called before anything happens, with the time of it. Default none.
	Advance func(t time.Duration)
}

// Result is what was measured.
type Result struct {
	Offered, Good, Denied     int
	OfferedInAll, DeniedInAll int             // also before the measurement began
	Took                      []time.Duration // of answered requests, in order of size
}

// Quantile of the time that answered requests took.
func (r *Result) Quantile(q float64) time.Duration {
	if len(r.Took) == 0 {
		return 0
	}
	return r.Took[min(len(r.Took)-1, int(q*float64(len(r.Took))))]
}

type request struct {
	began   time.Duration
	release func(now, took time.Duration, ok bool)
}

type answer struct {
	at time.Duration
	r  *request
}

type answers []answer

func (h answers) Len() int           { return len(h) }
func (h answers) Less(i, j int) bool { return h[i].at < h[j].at }
func (h answers) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *answers) Push(x any)        { *h = append(*h, x.(answer)) }
func (h *answers) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
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
			s.answer(now, heap.Pop(&s.busy).(answer).r)
		} else {
			s.arrive(now)
			arrival += time.Duration(s.random.ExpFloat64() / w.Rate(now) * 1e9)
		}
		for len(s.queue) > 0 && len(s.busy) < w.Servers(now) {
			heap.Push(&s.busy, answer{now + w.Service(now, s.random), s.queue[0]})
			s.queue = s.queue[1:]
		}
	}
	slices.Sort(s.Took)
	return s.Result
}

type simulation struct {
	World
	Result
	limiter Limiter
	random  *rand.Rand
	queue   []*request
	busy    answers // one for each busy server
}

func (s *simulation) arrive(now time.Duration) {
	var release func(now, took time.Duration, ok bool)
	allowed := true
	if s.limiter != nil {
		release, allowed = s.limiter.Acquire(now)
	}
	s.OfferedInAll++
	if !allowed {
		s.DeniedInAll++
	}
	if now >= s.From {
		s.Offered++
		if !allowed {
			s.Denied++
		}
	}
	if allowed {
		s.queue = append(s.queue, &request{now, release})
	}
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
	}
}
