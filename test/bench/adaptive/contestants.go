package adaptive

import (
	"context"
	"time"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/adaptivethrottler"
	"github.com/platinummonkey/go-concurrency-limits/core"
	"github.com/platinummonkey/go-concurrency-limits/limit"
	"github.com/platinummonkey/go-concurrency-limits/limiter"
	"github.com/platinummonkey/go-concurrency-limits/strategy"

	"github.com/weirhq/weir/internal/adaptive"
	"github.com/weirhq/weir/internal/priority"
	"github.com/weirhq/weir/internal/testoverload"
)

// servers of the services, and the least and the most that may be in flight.
const (
	servers  = 16
	minLimit = 5
	maxLimit = 1000
	first    = 20 // the first limit of the libraries, as most of them have by default
)

type contestant struct {
	name  string
	reads bool                        // the clock
	new   func() testoverload.Limiter // nil for none
}

var contestants = []contestant{
	{name: "no limiter"},
	{"fixed, 32", false, func() testoverload.Limiter { return &fixed{} }},
	{"failsafe-go adaptivelimiter", true, newFailsafe},
	{"failsafe-go adaptivethrottler", true, newThrottler},
	{"go-concurrency-limits gradient2", true, newGradient2},
	{"go-concurrency-limits vegas", true, newVegas},
	{"go-concurrency-limits aimd", true, newAIMD},
	{"weir", false, func() testoverload.Limiter { return weir{adaptive.New(minLimit, maxLimit)} }},
}

type release = func(now, took time.Duration, ok bool)

// fixed is right for a service in which nothing changes: 2 × its servers.
type fixed struct{ inFlight int }

func (f *fixed) Acquire(time.Duration, priority.Class) (release, bool) {
	if f.inFlight >= 2*servers {
		return nil, false
	}
	f.inFlight++
	return func(_, _ time.Duration, _ bool) { f.inFlight-- }, true
}

type weir struct{ *adaptive.Limiter }

func (l weir) Acquire(now time.Duration, c priority.Class) (release, bool) {
	return func(now, _ time.Duration, ok bool) {
		o := adaptive.Success
		if !ok {
			o = adaptive.Failure
		}
		l.Release(now, o)
	}, l.Limiter.Acquire(now, c)
}

type failsafe struct {
	adaptivelimiter.AdaptiveLimiter[any]
}

func newFailsafe() testoverload.Limiter {
	return failsafe{adaptivelimiter.NewBuilder[any]().WithLimits(minLimit, maxLimit, first).Build()}
}

func (l failsafe) Acquire(time.Duration, priority.Class) (release, bool) {
	permit, ok := l.TryAcquirePermit()
	if !ok {
		return nil, false
	}
	return func(_, _ time.Duration, ok bool) {
		if ok {
			permit.Record()
		} else {
			permit.Drop()
		}
	}, true
}

type throttler struct {
	adaptivethrottler.AdaptiveThrottler[any]
}

func newThrottler() testoverload.Limiter { return throttler{adaptivethrottler.NewWithDefaults[any]()} }

func (t throttler) Acquire(time.Duration, priority.Class) (release, bool) {
	if !t.TryAcquirePermit() {
		return nil, false
	}
	return func(_, _ time.Duration, ok bool) {
		if ok {
			t.RecordSuccess()
		} else {
			t.RecordFailure()
		}
	}, true
}

// limits is a limiter of go-concurrency-limits.
type limits struct{ core.Limiter }

func newLimits(l core.Limit) testoverload.Limiter {
	d, err := limiter.NewDefaultLimiter(l, int64(time.Second), int64(time.Second), int64(100*time.Microsecond), 100, strategy.NewSimpleStrategy(first), nil, nil)
	if err != nil {
		panic(err)
	}
	return limits{d}
}

func newGradient2() testoverload.Limiter {
	l, err := limit.NewGradient2Limit("", first, maxLimit, minLimit, nil, 0.2, 600, nil, nil)
	if err != nil {
		panic(err)
	}
	return newLimits(l)
}

func newVegas() testoverload.Limiter {
	return newLimits(limit.NewDefaultVegasLimitWithLimit("", first, nil, nil))
}

func newAIMD() testoverload.Limiter { return newLimits(limit.NewAIMDLimit("", first, 0.9, 1, nil)) }

func (l limits) Acquire(time.Duration, priority.Class) (release, bool) {
	listener, ok := l.Limiter.Acquire(context.Background())
	if !ok {
		return nil, false
	}
	return func(_, _ time.Duration, ok bool) {
		if ok {
			listener.OnSuccess()
		} else {
			listener.OnDropped()
		}
	}, true
}
