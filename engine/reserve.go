package engine

import (
	"context"
	"errors"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// way is how a request is charged.
type way uint8

const (
	plain    way = iota // all limits or none
	peeked              // nothing is charged
	placed              // as plain, but the request has its places already
	reserved            // with a hold
	always              // even what does not fit
)

// charging is how a request is charged. All but the way is for reservations.
type charging struct {
	way      way
	served   bool // this process sees the end of the request, so it gives places back itself
	settling bool // only rules that settle by the response are reserved

	ttl    time.Duration
	began  weir.Micros // if places are taken
	id     weir.HoldID // of the first hold
	groups byte        // how many of its holds are in use
	named  *NamedHold  // that it is; nil if the id is random
	number byte        // of its name's
	tags   []string
	client uint32 // a hash of who reserves; 0 if that is unknown
}

func (v *Verdict) isAlways() bool { return v.charging.way == always }

// isFinal reports whether what a result charges is final, so there is no hold on it. A key has
// few holds, and plain rules are often for a key that many requests share. A handler may know
// how many units were used of a rule that has some.
func (h *charging) isFinal(r *Result) bool {
	return h.way == reserved && r.final || h.way == reserved && h.served && (r.isPlace() || h.settling && !r.Rule.Settles() && r.Rule.CostUnit() == "")
}

// holds reports whether there is to be a hold on any of the results.
func (h *charging) holds(results []Result) bool {
	for i := range results {
		if r := &results[i]; h.way == reserved && !r.Look && !h.isFinal(r) {
			return true
		}
	}
	return false
}

var errNoHolds = errors.New("engine: the store cannot hold units; use one that implements weir.HoldStore, such as memory or redis")

// Reserve decides a request as Check does. If it is allowed, what it costs is an estimate,
// and v.Hold is set: end the hold with [Engine.Settle] or [Engine.Cancel] before ttl has
// passed. A ttl of 0 is weir.DefaultHoldTTL. If nothing was charged, because no limit
// applies, there is no hold. With a rule that limits how many requests are in flight, the
// hold lasts no longer than the rule's HoldTTL.
//
// While the store is unavailable, a reservation that is allowed has a hold, too. It is
// known to this engine only. Rules with on_failure: open are charged when it is settled.
//
// If the store has no place for another hold, v.Unheld is set: the request is charged as
// Check does, and what was charged stays.
func (e *Engine) Reserve(ctx context.Context, req *rule.Request, ttl time.Duration, v *Verdict) error {
	if e.holds == nil {
		return errNoHolds
	}
	if err := e.reserve(ctx, req, charging{ttl: ttl}, v, e.charge); err != nil {
		return err
	}
	e.observeHeld(v)
	return nil
}

// reserve is Reserve in one of its ways.
func (e *Engine) reserve(ctx context.Context, req *rule.Request, how charging, v *Verdict, charge decider) error {
	s := weir.Settlement{TTL: how.ttl}
	if err := s.Validate(); err != nil {
		return err
	}
	how.ttl, how.id, how.tags, how.client = s.TTL, weir.NewHoldID(), v.charging.tags[:0], e.hashOf(req)
	v.charging = how
	return e.check(ctx, req, v, reserved, charge)
}

// hashOf returns a hash of the client that sent a request, the same in every process; 0 if it is unknown.
func (e *Engine) hashOf(req *rule.Request) uint32 {
	var buffer [128]byte
	return crc32.ChecksumIEEE(e.installed.Load().table.AppendClient(buffer[:0], req))
}

// Charge charges the cost of a request whether or not it fits, for work that is done
// already; see [weir.Op.Always]. v.Allowed reports whether it fitted. Nothing is charged
// for clients that are exempt or blocked.
//
// While the store is unavailable, rules with on_failure: local are charged in this
// process. For others the charge is made when the store is available again. If it was the
// store's answer that was lost, they are charged twice.
func (e *Engine) Charge(ctx context.Context, req *rule.Request, v *Verdict) error {
	e.begin(v)
	if err := e.evaluate(ctx, e.installed.Load(), req, v, always, e.charge); err != nil {
		return err
	}
	var parts []SettledPart
	for i := range v.Results {
		if r := &v.Results[i]; r.Receipt != 0 {
			parts = addPart(parts, r.tag(0), 0, r.Cost, r.Excess)
		}
	}
	if len(parts) > 0 {
		e.observeHold(ChargedUnits, parts)
		e.observeCharged(v, 1)
	}
	return nil
}

// Settles reports whether a rule that applies settles by the response.
func (v *Verdict) Settles() bool {
	return slices.ContainsFunc(v.Results, func(r Result) bool { return r.Rule.Settles() })
}

// addTag appends what the store keeps for a result, with the number of groups behind it. That is mostly
// what it was for the last request that used the same memory.
func (e *Engine) addTag(v *Verdict, r *Result, more int) {
	h := &v.charging
	t := e.tagOf(v, r, more)
	if t.began = h.began; r.waits() {
		t.client = e.hash(r.Key)
	}
	var buffer [weir.MaxTagLen]byte
	text := t.append(buffer[:0])
	if n := len(h.tags); n < cap(h.tags) && h.tags[:n+1][n] == string(text) {
		h.tags = h.tags[:n+1]
		return
	}
	h.tags = append(h.tags, string(text))
}

// reserveResults reserves a group of results. Each group has a hold of its own, because shadow rules
// are decided for themselves; who knows the first of their ids can find the others.
func (e *Engine) reserveResults(ctx context.Context, v *Verdict, g group, results []Result, ops []weir.Op) ([]weir.Decision, error) {
	h, more := &v.charging, 0
	for next := g + 1; next <= countingShadow; next++ {
		if h.holds(v.inGroup(next)) {
			more++
		}
	}
	if v.places > 0 && !h.served {
		h.ttl, h.began = v.lasts(h.ttl), e.clock()
	}
	h.tags = h.tags[:0]
	for i := range results {
		e.addTag(v, &results[i], more)
	}
	decisions, id, err := e.openHold(ctx, v, g, ops)
	if err != nil {
		h.groups++ // there may be a hold
		return decisions, err
	}
	allowed := true
	for i, d := range decisions {
		results[i].full = ops[i].IsHeld() && !d.Allowed && d.Remaining >= ops[i].Cost
		allowed = allowed && (d.Allowed || v.failed != nil && v.failed[i] != nil)
	}
	if !allowed {
		return decisions, nil
	}
	h.groups++
	for i, d := range decisions {
		if v.failed != nil && v.failed[i] != nil {
			continue
		}
		results[i].held = ops[i].IsHeld()
		if results[i].held && v.Hold == (weir.HoldID{}) {
			v.Hold, v.HoldExpires = id, d.ResetAt.Add(-d.ResetAfter).Add(h.ttl)
			if !e.isQuick { // which is never unavailable
				e.issued.put(issuedKey(id), struct{}{})
			}
		}
	}
	return decisions, nil
}

// openHold asks the store to reserve a group of results. A hold with a name gets a number that is free.
func (e *Engine) openHold(ctx context.Context, v *Verdict, g group, ops []weir.Op) (decisions []weir.Decision, id weir.HoldID, err error) {
	for h := &v.charging; ; {
		if id = sibling(h.id, h.groups); h.named == nil || e.kept.holdOf(id, e.clock) == nil {
			r := weir.Reservation{ID: id, TTL: h.ttl, Tags: h.tags, Client: h.client, InProcess: h.served}
			if e.partial != nil && g == enforced {
				decisions, v.failed, err = e.partial.ReservePartial(ctx, v.decisions[:0], r, ops...)
			} else {
				decisions, err = e.holds.Reserve(ctx, v.decisions[:0], r, ops...)
			}
			if h.named == nil || !isTaken(ops, decisions, err) {
				return decisions, id, err
			}
		}
		if !e.nextNumber(h) {
			return nil, id, weir.ErrHoldsFull
		}
	}
}

// sibling is the id of another hold of the same request.
func sibling(id weir.HoldID, n byte) weir.HoldID {
	id[len(id)-1] ^= n
	return id
}

// tag is what a store keeps for each part of a hold.
type tag struct {
	rule, unit string
	shadow     bool
	place      bool        // of a limit on requests in flight
	began      weir.Micros // when the place was taken; 0 if that is unknown
	client     uint64      // whose requests may wait for the place; 0 if none do
	spender    string      // who spends money, and for which model; see spenderOf
	more       int         // further holds of the same request that may exist
}

func (r *Result) tag(more int) tag {
	return tag{rule: r.Rule.ID, unit: r.Rule.CostUnit(), shadow: r.Shadow, place: r.isPlace(), more: more}
}

func (t tag) String() string { return string(t.append(nil)) }

func (t tag) append(dst []byte) []byte {
	mode := byte('e')
	switch {
	case t.shadow && t.place:
		mode = 'q'
	case t.shadow:
		mode = 's'
	case t.place:
		mode = 'p'
	}
	dst = append(dst, byte('0'+t.more), mode)
	if t.place && t.began > 0 {
		dst = strconv.AppendInt(dst, int64(t.began), 36)
		if t.client != 0 {
			dst = strconv.AppendUint(append(dst, '.'), t.client, 36)
		}
	} else if !t.place {
		dst = append(dst, t.spender...)
	}
	dst = append(append(dst, ':'), t.unit...)
	return append(append(dst, ':'), t.rule...)
}

// parseTag parses the result of String. What is not one is a part of an unknown rule.
func parseTag(text string) (t tag) {
	if len(text) < 3 || text[0] < '0' || text[0] > '9' {
		return t
	}
	began, rest, found := strings.Cut(text[2:], ":")
	if !found {
		return t
	}
	t.more, t.shadow, t.place = int(text[0]-'0'), text[1] == 's' || text[1] == 'q', text[1] == 'p' || text[1] == 'q'
	t.unit, t.rule, _ = strings.Cut(rest, ":")
	if !t.place {
		t.spender = began
	} else if began != "" {
		began, client, _ := strings.Cut(began, ".")
		n, _ := strconv.ParseInt(began, 36, 64) // 0 is that it is unknown
		t.began = weir.Micros(n)
		t.client, _ = strconv.ParseUint(client, 36, 64)
	}
	return t
}
