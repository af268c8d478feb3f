package lease

import (
	"context"
	"hash/maphash"
	"math"
	"time"

	"github.com/weirhq/weir"
)

// asked is what an answer is about.
type asked struct {
	e       *entry
	answers uint32
	later   bool // a message is to follow

	// Of the message.
	seq        int64 // 0 if there is none
	keep, want int64
	short      bool   // the store granted less than that
	from, to   int64  // serial numbers of what it reports; equal if its receipt would not be known
	spent      *batch // of the holds whose units it reports
}

// sighting counts the requests on a key without a lease, and those on others that have the same place. Only maxOthers of these
// take it over: if one did, keys that are used in turns would never have a lease.
type sighting struct {
	key           uint64
	since         time.Duration
	count, others int32
}

const maxOthers = 16

// ask takes the ops in one call, which also says what is to be said about their keys.
func (s *Store) ask(ctx context.Context, dst []weir.Decision, ops []weir.Op) ([]weir.Decision, error) {
	s.countAsked(ops)
	if !canLease(ops) {
		return s.store.Take(ctx, dst, ops...)
	}
	sent, first := s.now(), len(dst)
	all := make([]asked, len(ops))
	messages := s.prepare(all, ops, sent, true)
	var err error
	if messages == nil {
		dst, err = s.store.Take(ctx, dst, ops...)
		if err == nil {
			s.measure(s.now().elapsed - sent.elapsed)
			s.learn(all, dst[first:], nil, ops)
		}
		return dst, err
	}
	answers, err := s.call(ctx, all, messages, sent)
	if err != nil {
		return dst, err
	}
	for i := range answers {
		dst = append(dst, answers[i].Decision)
	}
	return dst, nil
}

// canLease reports whether ops can go with messages about leases.
func canLease(ops []weir.Op) bool {
	for i := range ops {
		if op := &ops[i]; op.Always || op.Look || op.Final || op.Receipt != 0 {
			return false
		}
		for j := range i {
			if ops[j].Key == ops[i].Key && ops[j].Limit.Kind() == ops[i].Limit.Kind() {
				return false
			}
		}
	}
	return len(ops) > 0
}

// prepare notes which keys the ops are about, and returns the ops with messages about these, or nil if there is nothing to
// say. If messages cannot go with the call, they follow it, so that they lease nothing that the call would take.
func (s *Store) prepare(all []asked, ops []weir.Op, now instant, with bool) []weir.LeaseOp {
	wants := true
	for i := range ops {
		wants = wants && isPlain(&ops[i]) && s.isWorth(&ops[i])
	}
	var messages []weir.LeaseOp
	for i := range ops {
		op := &ops[i]
		hash := maphash.String(s.seed, op.Key)
		sh := s.shardOf(hash)
		sh.mu.Lock()
		e := sh.findLocked(hash, op)
		if e == nil && wants {
			e = s.meetLocked(sh, hash, op, now.elapsed)
		}
		if e != nil {
			all[i].e, all[i].answers = e, e.answers
			e.add(op.Cost, now.elapsed, s.roundTrip())
			e.probe(op.Cost, now.elapsed, s.roundTrip())
			held := e.held(now)
			switch {
			case s.closing.Load() || held == 0 && (e.flight || !wants):
			case !with:
				all[i].later = held < op.Cost
			default:
				if messages == nil {
					messages = make([]weir.LeaseOp, len(ops))
				}
				messages[i] = s.messageLocked(&all[i], held-min(held, op.Cost), op.Cost, now)
			}
		}
		sh.mu.Unlock()
	}
	for i := range messages {
		messages[i].Op = ops[i]
	}
	return messages
}

// isWorth reports whether units for an op can be leased, and be of use.
func (s *Store) isWorth(op *weir.Op) bool {
	return op.Leave < op.Limit.Capacity() && s.horizon(op.Limit) >= minHorizon
}

func (s *Store) countAsked(ops []weir.Op) {
	worth := false
	for i := range ops {
		if s.isWorth(&ops[i]) {
			worth = true
			s.names.of(ops[i].Limit).asked.Add(1)
		}
	}
	if worth {
		s.asked.Add(1)
	}
}

// sightingLocked returns where the requests on a key are counted, and as which key.
func (sh *shard) sightingLocked(hash uint64, op *weir.Op) (key uint64, seen *sighting) {
	key = hash ^ op.Limit.Kind()*0x9e3779b97f4a7c15 ^ uint64(op.Leave)*0xc2b2ae3d27d4eb4f
	return key, &sh.seen[key/shardCount%sightings]
}

// meetLocked returns an entry for an op if its key is used often enough to have one.
func (s *Store) meetLocked(sh *shard, hash uint64, op *weir.Op, now time.Duration) *entry {
	key, seen := sh.sightingLocked(hash, op)
	switch over := seen.count == 0 || now-seen.since >= s.horizon(op.Limit); {
	case over || seen.key != key && seen.others == maxOthers:
		*seen = sighting{key: key, since: now}
	case seen.key != key:
		seen.others++
		return nil
	}
	if seen.count++; seen.count <= seldom || s.closing.Load() {
		return nil
	}
	if s.keys.Add(1) > s.maxKeys {
		s.keys.Add(-1)
		s.full.Add(1)
		return nil
	}
	e := s.newEntry(hash, op, seen.since, now)
	e.next = sh.keys[hash]
	sh.keys[hash] = e
	*seen = sighting{}
	s.agenda.add(e, now+e.horizon)
	if s.started.CompareAndSwap(false, true) {
		go s.run()
	}
	return e
}

// messageLocked is the next message about a lease. Of what is held, it gives up all but so many units.
func (s *Store) messageLocked(a *asked, held, cost int64, now instant) weir.LeaseOp {
	e := a.e
	if e.keep > maxTotal {
		held = 0
	}
	if n := e.held(now); n > 0 {
		e.counts.returned.Add(n - held)
	} else {
		e.counts.lost.Add(max(0, e.rest()))
	}
	if cost == 0 || !e.leaks() { // or else the receipt would not be known
		a.spent = e.ageHolds(now.elapsed)
	}
	a.answers, a.seq, a.from, a.to = e.answers, e.seq+1, e.toldAt, e.serial
	if e.flight || e.unsure || e.spent == e.told {
		a.from = a.to
	}
	a.want = max(0, e.target(now.elapsed, s.roundTrip())-held)
	if e.used+e.horizon <= now.elapsed || s.closing.Load() || e.keep > maxTotal {
		a.want = 0
	}
	e.seq, e.told, e.toldAt, e.keep = a.seq, e.spent, e.serial, e.spent+e.reserved+held
	e.flight, e.refill = true, false
	e.probe(e.deniedCost, now.elapsed, s.roundTrip())
	a.keep = e.keep
	s.messages.Add(1)
	return weir.LeaseOp{
		Op: weir.Op{Key: e.key, Limit: e.limit, Leave: e.leave, Cost: cost},
		ID: e.id, Seq: e.seq, Spent: e.spent, Charged: e.charged, Keep: e.keep, Want: a.want, Term: e.term,
	}
}

// call sends messages, and takes in their answers.
func (s *Store) call(ctx context.Context, all []asked, messages []weir.LeaseOp, sent instant) ([]weir.LeaseAnswer, error) {
	answers, err := s.store.Lease(ctx, nil, messages...)
	now := s.now()
	if err == nil {
		s.measure(now.elapsed - sent.elapsed)
	}
	for i := range all {
		a := &all[i]
		if a.e == nil {
			continue
		}
		sh := s.shardOf(a.e.hash)
		sh.mu.Lock()
		switch {
		case err == nil:
			if a.seq == a.e.seq {
				s.receiveLocked(a, &answers[i], messages[i].Cost, sent, now)
			}
			a.e.learn(&answers[i].Decision, messages[i].Cost, a, s.roundTrip(), now)
		case a.seq == a.e.seq:
			s.failLocked(a.e, now.elapsed)
		}
		sh.mu.Unlock()
	}
	return answers, err
}

// receiveLocked takes in the answer to the newest message.
func (s *Store) receiveLocked(a *asked, answer *weir.LeaseAnswer, cost int64, sent, now instant) {
	e := a.e
	e.flight = false
	if e.unsure {
		e.unsure, e.tries = false, 0
		s.unsure.Add(-1)
	}
	if answer.Drop {
		e.counts.lost.Add(e.held(now))
		e.begin(max(0, e.spent-answer.Charged))
		s.agenda.hasten(e, now.elapsed)
		return
	}
	e.charged = max(e.told, answer.Charged)
	granted := max(0, min(a.want, answer.Granted-a.keep))
	e.keep = min(a.keep, answer.Granted) + granted
	a.short = granted < a.want
	if a.from < a.to && (cost == 0 || !answer.Allowed || !e.leaks()) {
		// Of a bucket, what the op took drains after what was reported.
		if len(e.reports) == maxReports {
			e.reports = append(e.reports[:0], e.reports[1:]...)
		}
		e.reports = append(e.reports, report{a.from, a.to, weir.Receipt(answer.ResetAt)})
		if a.spent != nil {
			a.spent.receipt = weir.Receipt(answer.ResetAt)
		}
	}
	good := e.term - e.term/50 - time.Millisecond
	e.until, e.untilWall = sent.elapsed+good, sent.wall+int64(good)
	e.renew = together(sent.elapsed+renewal(e.term, s.roundTrip()), e.term)
	e.watch(now.elapsed, s.roundTrip())
	if e.keep > maxTotal && !e.open() {
		e.begin(0)
	}
	s.agenda.hasten(e, e.renew)
}

// failLocked has the newest message followed up.
func (s *Store) failLocked(e *entry, now time.Duration) {
	e.flight = false
	if !e.unsure {
		e.unsure = true
		s.unsure.Add(1)
	}
	e.retry = now + min(firstRetry<<e.tries, lastRetry)
	e.tries = min(e.tries+1, 16)
	s.agenda.hasten(e, e.retry)
}

// learn takes in decisions that came without answers to messages. failed has an error for each that did not come.
func (s *Store) learn(all []asked, decisions []weir.Decision, failed []error, ops []weir.Op) {
	now := s.now()
	for i := range all {
		if e := all[i].e; e != nil && (failed == nil || failed[i] == nil) {
			sh := s.shardOf(e.hash)
			sh.mu.Lock()
			e.learn(&decisions[i], ops[i].Cost, &all[i], s.roundTrip(), now)
			if all[i].later {
				e.refill = true
				s.agenda.hasten(e, now.elapsed)
			}
			sh.mu.Unlock()
		}
	}
}

// measure takes in how long a call took.
func (s *Store) measure(took time.Duration) {
	if trip := s.trip.Load(); trip > 0 {
		took = time.Duration(trip) + (took-time.Duration(trip))/8
	}
	s.trip.Store(int64(max(1, took)))
}

func (s *Store) roundTrip() time.Duration { return time.Duration(s.trip.Load()) }

const never = time.Duration(math.MaxInt64)
