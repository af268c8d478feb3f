package engine

import (
	"context"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// seen is what the store last said of clients who have used much of a limit that
// goes on locally. When the store is unavailable, such a client does not begin again: it
// begins with what it had used.
//
// It is a table of fixed size in which each client has one place. Another client with the
// same place replaces it, so that the first one has a little more room at the start of an
// outage.
type seen struct {
	seed   maphash.Seed
	places [seenPlaces]seenPlace

	down   atomic.Bool
	outage atomic.Int64 // the number of the current one, or the last
}

const (
	seenBits   = 12
	seenPlaces = 1 << seenBits
)

// moment is how long the order of answers is in doubt.
const moment = weir.Micros(100_000)

type seenPlace struct {
	mu     sync.Mutex
	client uint64 // 0 if unused
	used   int64
	span   weir.Micros // how long it would take, from at, to be fully reset
	at     weir.Micros
	outage int64 // for which it was used already

	// seeding is held until the local store has been charged, so that requests at the same
	// time find the charge. That store is usually in memory and then never waits.
	seeding sync.Mutex
}

func newSeen() *seen { return &seen{seed: maphash.MakeSeed()} }

// healthy and failing tell the outages apart.
func (s *seen) healthy() {
	if s.down.Load() {
		s.down.Store(false)
	}
}

func (s *seen) failing() {
	if !s.down.Load() && s.down.CompareAndSwap(false, true) {
		s.outage.Add(1)
	}
}

func (s *seen) place(key string, limit *weir.Compiled) (*seenPlace, uint64) {
	h := maphash.String(s.seed, key) ^ limit.Kind()*0x9e3779b97f4a7c15
	return &s.places[h>>(64-seenBits)], h | 1 // the lower bits of two limits of a rule are the same
}

// remember takes note of those who have used more than half.
func (e *Engine) remember(results []Result) {
	for i := range results {
		r := &results[i]
		if r.Rule.OnFailure != rule.Local || r.Used()*2 < r.Limit || r.isPlace() { // who is in flight leaves soon
			continue
		}
		p, client := e.seen.place(r.Key, r.Quota)
		used, now := r.Used(), e.clock()
		p.mu.Lock()
		// Answers that come at once are not in the order in which they were made.
		if p.client != client || used >= p.used || now-p.at > moment {
			p.client, p.used, p.at, p.outage = client, used, now, 0
			p.span = weir.Micros(r.ResetAfter.Microseconds())
		}
		p.mu.Unlock()
	}
}

func (e *Engine) seedAll(ctx context.Context, ops []weir.Op) {
	for _, op := range ops {
		op.Always, op.Leave = false, 0
		e.seed(ctx, op, max(1, e.instances()))
	}
}

// seed charges to the local store, once an outage, this instance's share of what a
// client had used, less what has come back since. No request of the client is decided
// locally before that.
func (e *Engine) seed(ctx context.Context, op weir.Op, instances int) {
	p, client := e.seen.place(op.Key, op.Limit)
	p.seeding.Lock()
	defer p.seeding.Unlock()
	if op.Cost = p.claim(client, &op, e.seen.outage.Load(), e.clock(), int64(instances)); op.Cost == 0 {
		return
	}
	op.Look = false
	// What does not fit is as good as all of it.
	if d, err := e.local.Take(ctx, nil, op); err == nil && !d[0].Allowed && d[0].Remaining > 0 {
		op.Cost = d[0].Remaining
		e.local.Take(ctx, nil, op)
	}
}

// claim returns how much to charge. The next call returns nothing for the same units.
func (p *seenPlace) claim(client uint64, op *weir.Op, outage int64, now weir.Micros, instances int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.at + p.span - now
	if p.client != client || p.outage == outage || left <= 0 || p.span <= 0 {
		return 0
	}
	p.outage = outage
	used := p.used
	switch op.Limit.Algorithm() {
	case weir.TokenBucket, weir.LeakyBucket:
		// It comes back evenly. Of windows and logs that is not known, so there it
		// is all still used.
		used = int64(math.Ceil(float64(used) * min(1, float64(left)/float64(p.span))))
	}
	return min(op.Limit.Capacity(), (used+instances-1)/instances)
}
