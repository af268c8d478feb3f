package log

import (
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/redis"
)

// phase is something that happens to a log, after what happened before.
type phase struct {
	name string
	run  func(*drive) (allowed int64, err error)
}

var phases = []phase{
	{"a script that only counts", onlyCount},
	{"grows by cost 1", func(d *drive) (int64, error) { return d.exactly(d.stores, d.n, d.n+1000, limit(d.n), 1) }},
	{"is full, cost 1", func(d *drive) (int64, error) { return d.exactly(d.stores, 0, d.some, limit(d.n), 1) }},
	{"is full, cost N/2", func(d *drive) (int64, error) { return d.exactly(d.stores, 0, d.some, limit(d.n), d.n/2) }},
	{"N lowered to N/10", func(d *drive) (int64, error) { return d.exactly(d.stores, 0, d.some, limit(d.n/10), 1) }},
	{"refunds", func(d *drive) (int64, error) { return 0, d.refund() }},
	{"grows again", func(d *drive) (int64, error) { return d.take(d.stores, d.some, limit(d.n), 1) }},
	{"slides", func(d *drive) (int64, error) {
		// As many units stop counting as are taken.
		d.pass(period - time.Duration(d.n)*time.Microsecond)
		return d.take(d.stores, d.some, limit(d.n), 1)
	}},
	{"half expires", func(d *drive) (int64, error) {
		d.pass(time.Duration(d.n/2) * time.Microsecond)
		return d.take(d.stores, d.some, limit(d.n), 1)
	}},
	{"the newest half refunded", func(d *drive) (int64, error) {
		return 0, d.stores[0].Refund(d.ctx, weir.Op{Key: "k", Limit: limit(d.n), Cost: max(1, d.n/4), Receipt: weir.Latest})
	}},
	{"all expires", func(d *drive) (int64, error) {
		d.pass(2 * period)
		return d.take(d.stores, d.some, limit(d.n), 1)
	}},
	{"large costs", func(d *drive) (int64, error) {
		d.pass(2 * period)
		return d.exactly(d.stores, 100, d.some, limit(d.n), d.n/100)
	}},
	{"reset of a full log", func(d *drive) (int64, error) {
		return 0, d.stores[0].Reset(d.ctx, weir.Op{Key: "k", Limit: limit(d.n), Cost: 1})
	}},
	{"one store, real clock", oneStore},
}

// onlyCount shows what the machine does to a call of this length, whatever it is for.
func onlyCount(d *drive) (int64, error) {
	return 0, d.each(d.stores, func(*redis.Store) error {
		for range d.some / callers {
			d.redis.Do("EVAL", "for _ = 1, 4000 do end return 1", "0")
		}
		return nil
	})
}

// exactly fails unless so many were allowed; a late check may have been charged, or not.
func (d *drive) exactly(stores []*redis.Store, want, requests int64, limit *weir.Compiled, cost int64) (int64, error) {
	got, err := d.take(stores, requests, limit, cost)
	if err == nil && (got > want || got+d.late.Load() < want) {
		err = fmt.Errorf("%d were allowed, want %d", got, want)
	}
	return got, err
}

// oneStore is what a process does: its callers share a store, with the timeout and the
// clock that it has by default.
func oneStore(d *drive) (int64, error) {
	s, err := d.open(nil, redis.DefaultTimeout)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return d.exactly([]*redis.Store{s}, d.n, d.n+d.some, limit(d.n), 1)
}
