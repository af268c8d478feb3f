package engine

import (
	"context"
	"hash/maphash"
	"math"
	"sync"

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

	// seeding is held until the local store has been charged, so that requests at the same
	// time find the charge. That store is usually in memory and then never waits.
	seeding sync.Mutex
}

func newSeen() *seen { return &seen{seed: maphash.MakeSeed()} }

func (s *seen) place(key string, limit *weir.Compiled) (*seenPlace, uint64) {
	h := maphash.String(s.seed, key) ^ limit.Kind()*0x9e3779b97f4a7c15
	return &s.places[h>>(64-seenBits)], h | 1 // the lower bits of two limits of a rule are the same
}

// remember takes note of those who have used more than half. A store in memory is never unavailable.
func (e *Engine) remember(results []Result) {
	if e.memory != nil {
		return
	}
	for i := range results {
		r := &results[i]
		if r.Rule.OnFailure == rule.Closed || r.Local || r.Used()*2 < r.Limit || r.isPlace() { // who is in flight leaves soon
			continue
		}
		p, client := e.seen.place(r.Key, r.Quota)
		used, now := r.Used(), e.clock()
		p.mu.Lock()
		// Answers that come at once are not in the order in which they were made.
		if p.client != client || used >= p.used || now-p.at > moment {
			p.client, p.used, p.at = client, used, now
			p.span = weir.Micros(r.ResetAfter.Microseconds())
		}
		p.mu.Unlock()
	}
}

func (e *Engine) seedAll(ctx context.Context, ops []weir.Op) {
	for _, op := range ops {
		e.seed(ctx, op, max(1, e.instances()))
	}
}

// seed lets the local store know of at least this instance's share of what a client had used, less
// what has come back since. No request of the client is decided locally before that.
func (e *Engine) seed(ctx context.Context, op weir.Op, instances int) {
	p, client := e.seen.place(op.Key, op.Limit)
	p.seeding.Lock()
	defer p.seeding.Unlock()
	op.Cost = p.share(client, &op, e.clock(), int64(instances))
	if op.Cost == 0 {
		return
	}
	op.Always, op.Look, op.Final, op.Leave, op.Receipt = false, false, false, 0, 0
	d, err := e.local.Peek(ctx, nil, op)
	if err != nil {
		return
	}
	if op.Cost -= d[0].Limit - d[0].Remaining; op.Cost <= 0 {
		return
	}
	// Another request may have taken some since.
	if d, err = e.local.Take(ctx, d[:0], op); err == nil && !d[0].Allowed && d[0].Remaining > 0 {
		op.Cost = d[0].Remaining
		_, _ = e.local.Take(ctx, d[:0], op)
	}
}

// share returns how much of what a client had used is this instance's.
func (p *seenPlace) share(client uint64, op *weir.Op, now weir.Micros, instances int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.at + p.span - now
	if p.client != client || left <= 0 || p.span <= 0 {
		return 0
	}
	used := p.used
	switch op.Limit.Algorithm() {
	case weir.TokenBucket, weir.LeakyBucket:
		// It comes back evenly. Of windows and logs that is not known, so there it
		// is all still used.
		used = int64(math.Ceil(float64(used) * min(1, float64(left)/float64(p.span))))
	}
	return min(op.Limit.Capacity(), (used+instances-1)/instances)
}
