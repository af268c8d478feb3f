package main

import (
	"math/rand/v2"
	"time"

	"github.com/weirhq/weir/internal/overload"
	"github.com/weirhq/weir/internal/testkit/testoverload"
)

// The service works on 16 requests at the same time, and on each for 10 ms, more or less.
const (
	servers  = 16
	takes    = 10 * time.Millisecond
	capacity = servers * float64(time.Second) / float64(takes) // per second
)

// mix is the share of the requests of each priority.
var mix = [overload.Priorities]float64{overload.Low: 0.4, overload.Normal: 0.4, overload.High: 0.15, overload.Critical: 0.05}

// loads are × capacity, one after the other.
var loads = []float64{0.5, 1, 2, 5, 0.5}

const (
	phase  = 10 * time.Second // of each load
	slice  = 500 * time.Millisecond
	slices = int(phase / slice) // of a phase
)

var end = time.Duration(len(loads)) * phase

// loadAt is the load at a time.
func loadAt(t time.Duration) float64 { return loads[min(len(loads)-1, int(t/phase))] }

// history is what became of the requests of each priority, by the time at which they came.
type history [overload.Priorities][]struct{ offered, answered int }

// play sends the requests to the service, through a limiter if there is one.
func play(l *overload.Limiter) *history {
	r := &recorder{limiter: l}
	for c := range r.history {
		r.history[c] = make([]struct{ offered, answered int }, len(loads)*slices)
	}
	testoverload.Run(testoverload.World{
		Servers: func(time.Duration) int { return servers },
		Service: func(_ time.Duration, r *rand.Rand) time.Duration {
			return time.Duration(r.ExpFloat64() * float64(takes))
		},
		Rate:   func(t time.Duration) float64 { return capacity * loadAt(t) },
		Mix:    mix,
		Length: end + testoverload.Timeout, // for the last answers
	}, r, 1)
	return &r.history
}

// newLimiter is what weir gateway --adaptive 5-1000 has for an upstream.
func newLimiter() *overload.Limiter { return overload.New(5, 1000) }

// recorder takes notes for a limiter.
type recorder struct {
	limiter *overload.Limiter
	history history
}

// Acquire decides a request, and takes note of it.
func (r *recorder) Acquire(now time.Duration, c overload.Priority) (release func(now, took time.Duration, ok bool), allowed bool) {
	if now >= end {
		return nil, false
	}
	at := &r.history[c][now/slice]
	at.offered++
	if r.limiter != nil && !r.limiter.Acquire(now, c) {
		return nil, false
	}
	return func(now, _ time.Duration, ok bool) {
		o := overload.Failure
		if ok {
			at.answered++
			o = overload.Success
		}
		if r.limiter != nil {
			r.limiter.Release(now, o)
		}
	}, true
}

// inPhase sums up what became of the requests of a priority in a phase.
func (h *history) inPhase(c overload.Priority, phase int) (offered, answered int) {
	for _, s := range h[c][phase*slices : (phase+1)*slices] {
		offered += s.offered
		answered += s.answered
	}
	return offered, answered
}
