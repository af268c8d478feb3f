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

	"github.com/weirhq/weir/internal/overload"
	"github.com/weirhq/weir/internal/testkit/testoverload"
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
	{"fixed, 32", false, newFixed},
	{"failsafe-go adaptivelimiter", true, newFailsafe},
	{"failsafe-go adaptivethrottler", true, newThrottler},
	{"go-concurrency-limits gradient2", true, func() testoverload.Limiter {
		l, err := limit.NewGradient2Limit("", first, maxLimit, minLimit, nil, 0.2, 600, nil, nil)
		return newLimits(l, err)
	}},
	{"go-concurrency-limits vegas", true, func() testoverload.Limiter {
		return newLimits(limit.NewDefaultVegasLimitWithLimit("", first, nil, nil), nil)
	}},
	{"go-concurrency-limits aimd", true, func() testoverload.Limiter {
		return newLimits(limit.NewAIMDLimit("", first, 0.9, 1, nil), nil)
	}},
	{"weir", false, func() testoverload.Limiter { return weir{overload.New(minLimit, maxLimit)} }},
}

type release = func(now, took time.Duration, ok bool)

type weir struct{ *overload.Limiter }

func (l weir) Acquire(now time.Duration, c overload.Priority) (release, bool) {
	return func(now, _ time.Duration, ok bool) {
		o := overload.Success
		if !ok {
			o = overload.Failure
		}
		l.Release(now, o)
	}, l.Limiter.Acquire(now, c)
}

// other is a limiter that reads the clock itself, if it does. It returns what to call for a
// success and for a failure, unless a request is denied.
type other func() (success, failure func(), allowed bool)

func (o other) Acquire(time.Duration, overload.Priority) (release, bool) {
	success, failure, allowed := o()
	return func(_, _ time.Duration, ok bool) {
		if ok {
			success()
		} else {
			failure()
		}
	}, allowed
}

// newFixed is right for a service in which nothing changes: 2 × its servers.
func newFixed() testoverload.Limiter {
	inFlight := 0
	end := func() { inFlight-- }
	return other(func() (_, _ func(), allowed bool) {
		if inFlight < 2*servers {
			inFlight++
			return end, end, true
		}
		return nil, nil, false
	})
}

func newFailsafe() testoverload.Limiter {
	l := adaptivelimiter.NewBuilder[any]().WithLimits(minLimit, maxLimit, first).Build()
	return other(func() (_, _ func(), allowed bool) {
		if permit, ok := l.TryAcquirePermit(); ok {
			return permit.Record, permit.Drop, true
		}
		return nil, nil, false
	})
}

func newThrottler() testoverload.Limiter {
	t := adaptivethrottler.NewWithDefaults[any]()
	return other(func() (_, _ func(), allowed bool) { return t.RecordSuccess, t.RecordFailure, t.TryAcquirePermit() })
}

// newLimits is a limiter of go-concurrency-limits.
func newLimits(l core.Limit, err error) testoverload.Limiter {
	if err != nil {
		panic(err)
	}
	d, err := limiter.NewDefaultLimiter(l, int64(time.Second), int64(time.Second), int64(100*time.Microsecond), 100, strategy.NewSimpleStrategy(first), nil, nil)
	if err != nil {
		panic(err)
	}
	return other(func() (_, _ func(), allowed bool) {
		if listener, ok := d.Acquire(context.Background()); ok {
			return listener.OnSuccess, listener.OnDropped, true
		}
		return nil, nil, false
	})
}
