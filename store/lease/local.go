package lease

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"time"

	"github.com/weirhq/weir"
)

// Take implements weir.Store.
func (s *Store) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if err := cmp.Or(ctx.Err(), weir.ValidateTake(ops)); err != nil {
		return dst, err
	}
	if decisions, ok := s.decide(unread, dst, ops); ok {
		return decisions, nil
	}
	return s.ask(ctx, dst, ops)
}

// decide decides the ops of a request in memory, if it can.
func (s *Store) decide(read time.Duration, dst []weir.Decision, ops []weir.Op) ([]weir.Decision, bool) {
	if len(ops) == 1 {
		decided := append(dst, weir.Decision{})
		if _, ok := s.decideOne(read, &ops[0], &decided[len(dst)]); !ok {
			return dst, false
		}
		return decided, true
	}
	return s.decideMany(read, dst, ops, nil)
}

// isPlain reports whether an op is one that units can serve.
func isPlain(op *weir.Op) bool {
	return !op.Always && !op.Look && !op.Final && int64(op.Receipt)|int64(op.MaxDelay) == 0
}

func (s *Store) shardOf(hash uint64) *shard { return &s.shards[hash%shardCount] }

// findLocked returns the entry for an op, or nil.
func (sh *shard) findLocked(hash uint64, op *weir.Op) *entry {
	for e := sh.keys[hash]; e != nil; e = e.next {
		if e.key == op.Key && e.leave == op.Leave && e.isUnder(op.Limit) {
			return e
		}
	}
	return nil
}

// servingLocked returns the entry whose units serve an op: its own, or one that leaves more for others. If none can, it
// returns its own. It is nil if there is none.
func (sh *shard) servingLocked(hash uint64, op *weir.Op, now instant) *entry {
	own := sh.findLocked(hash, op)
	if own != nil && own.held(now) >= op.Cost {
		return own
	}
	for e := sh.keys[hash]; e != nil; e = e.next {
		if e.leave > op.Leave && e.key == op.Key && e.held(now) >= op.Cost && e.isUnder(op.Limit) {
			return e
		}
	}
	return own
}

// isUnder reports whether the units of an entry are of a limit. A limit that was compiled again is the same.
func (e *entry) isUnder(limit *weir.Compiled) bool {
	if e.limit == limit {
		return true
	}
	if e.kind != limit.Kind() || e.limit.Limit() != limit.Limit() {
		return false
	}
	e.limit = limit
	return true
}

// decideOne is for the usual request, with one op. Without a place for the decision, it only says whether the
// request is allowed.
func (s *Store) decideOne(read time.Duration, op *weir.Op, d *weir.Decision) (allowed, decided bool) {
	if !isPlain(op) || s.termOf(op.Limit) == 0 {
		return false, false
	}
	now := s.at(read)
	hash := maphash.String(s.seed, op.Key)
	sh := s.shardOf(hash)
	sh.mu.Lock()
	if e := sh.servingLocked(hash, op, now); e != nil {
		switch {
		case e.held(now) >= op.Cost:
			allowed, decided = true, true
			s.spendLocked(e, op.Cost, d, now)
			sh.local++
		case e.denies(op.Cost, now):
			decided = true
			e.miss(op.Cost, now.elapsed, s.roundTrip())
			if d != nil {
				e.deny(d, op.Cost, now)
			}
			sh.denied++
			e.denied++
		}
	}
	sh.mu.Unlock()
	return allowed, decided
}

// spendLocked spends units that are held.
func (s *Store) spendLocked(e *entry, cost int64, d *weir.Decision, now instant) {
	if d != nil {
		d.Receipt = e.receipt()
	}
	e.spend(cost)
	s.useLocked(e, cost, d, now)
}

// useLocked notes that units were spent or reserved.
func (s *Store) useLocked(e *entry, cost int64, d *weir.Decision, now instant) {
	e.add(cost, now.elapsed, s.roundTrip())
	e.local++
	if d != nil {
		e.describe(d, now)
		d.Allowed = true
	}
	if e.rest() <= e.low && !e.flight && !e.unsure && !e.refill && now.elapsed >= e.deniedUntil {
		e.refill = true
		s.agenda.hasten(e, now.elapsed)
	}
}

// decideMany decides several ops, all or none. If a denial is remembered of one of them, the answer for the others is
// that of Peek, from what was last known; if that would be another denial, the store is asked. With a hold, it gets what is
// allowed, but for ops that are final.
func (s *Store) decideMany(read time.Duration, dst []weir.Decision, ops []weir.Op, h *hold) ([]weir.Decision, bool) {
	var hashBuf [8]uint64
	var entryBuf [8]*entry
	var orderBuf [8]int
	hashes, entries, order := hashBuf[:0], entryBuf[:0], orderBuf[:0]
	if !canLease(ops) {
		return dst, false
	}
	for i := range ops {
		if ops[i].MaxDelay != 0 || s.termOf(ops[i].Limit) == 0 {
			return dst, false
		}
		hashes = append(hashes, maphash.String(s.seed, ops[i].Key))
		order = append(order, int(hashes[i]%shardCount))
	}
	slices.Sort(order)
	order = slices.Compact(order)
	now := s.at(read)
	for _, i := range order {
		s.shards[i].mu.Lock()
	}
	defer func() {
		for _, i := range order {
			s.shards[i].mu.Unlock()
		}
	}()
	allowed, denied, known := true, false, true
	for i := range ops {
		e := s.shardOf(hashes[i]).servingLocked(hashes[i], &ops[i], now)
		if e == nil {
			return dst, false
		}
		e.used = max(e.used, now.elapsed)
		entries = append(entries, e)
		if e.held(now) >= ops[i].Cost {
			continue
		}
		allowed = false
		if e.denies(ops[i].Cost, now) {
			denied = true
			e.miss(ops[i].Cost, now.elapsed, s.roundTrip())
		} else if e.resetAt == 0 || ops[i].Cost > e.free+e.held(now) {
			known = false
		}
	}
	if !allowed && !(denied && known) {
		return dst, false
	}
	for i, e := range entries {
		var d weir.Decision
		switch {
		case allowed && h != nil && !h.final[i]:
			d.Receipt = e.receipt() // which only says that it is charged
			h.parts = append(h.parts, part{e, e.reserve(ops[i].Cost), ops[i].Cost, h.reservation.Tag(i)})
			s.useLocked(e, ops[i].Cost, &d, now)
		case allowed:
			s.spendLocked(e, ops[i].Cost, &d, now)
		case e.held(now) < ops[i].Cost && e.denies(ops[i].Cost, now):
			e.deny(&d, ops[i].Cost, now)
			e.denied++
		default:
			e.describe(&d, now)
			d.Allowed = true
			e.denied++ // it, too, needed no call
		}
		dst = append(dst, d)
	}
	if sh := s.shardOf(hashes[0]); allowed {
		sh.local++
	} else {
		sh.denied++
	}
	return dst, true
}
