package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/weirhq/weir"
)

// step is a further hold of a request whose answer is longer than was expected.
type step struct {
	id       weir.HoldID
	part     int
	reserved int64
	used     int64 // what End finds
}

// maxSteps is how many further holds a request can have. Steps that fit whole need a dozen for the longest answer; those of a
// budget that refills meanwhile are smaller, but not so small that one stream takes the holds of a key from others.
const maxSteps = 64

// growth is how the part of a hold reserves more.
type growth struct {
	first   int64 // was reserved before the answer
	prompt  int64 // of that, what is for the prompt
	ceiling int64 // may be reserved in all
	next    int64 // units from whose use on a step is due
	small   bool  // the last step was smaller than an eighth of what it should be
	never   bool
	ops     []weir.Op
	tags    []string
}

// follow lets the part reserve more later, if its rule reserves less than a request may use and denies what does
// not fit. Used units are divided alike for all keys of a part, so it grows under each of them or under none: not if
// they have reserved different numbers, if one has reached its ceiling, or if one is not in the store.
func (h *Hold) follow(p *HoldPart, v *Verdict, r *Result) {
	g := &p.growth
	grows := r.ceiling > r.Cost && r.Asked && !r.Local && !r.Shadow
	if g.never || !grows || g.first != 0 && g.first != r.Cost {
		*g = growth{never: true}
		return
	}
	if g.first == 0 || r.ceiling < g.ceiling {
		g.ceiling = r.ceiling
	}
	g.first, g.prompt = r.Cost, r.prompt
	// The verdict's key does not outlive it.
	g.ops = append(g.ops, weir.Op{Key: strings.Clone(r.Key), Limit: r.Compiled, Leave: r.Leave})
	g.tags = append(g.tags, h.engine.tagOf(v, r, 0).String())
	g.next = p.Reserved - p.step()/4
}

// step is how much more is reserved at once: half of what was for the answer until now, so that a long answer takes
// few steps.
func (p *HoldPart) step() int64 {
	return max(0, min(max(1, (p.Reserved-p.growth.prompt)/2), p.growth.ceiling-p.Reserved))
}

// Reach tells how much of a part is used while a request is being served, and reports whether that is more than
// is reserved. When it is near to that, the next step is reserved under a further hold, if it fits. It is for
// the goroutine that calls End.
func (h *Hold) Reach(part int, used int64) (over bool) {
	p := &h.Parts[part]
	if used > p.growth.next && len(p.growth.ops) > 0 && p.step() > 0 && len(h.steps) < maxSteps {
		h.grow(part, used)
	}
	return used > p.Reserved
}

// Grows reports whether a part may reserve more.
func (p *HoldPart) Grows() bool { return len(p.growth.ops) > 0 }

// grow reserves a step or, if that does not fit, what is left. If that is less than an eighth of a step, the next one is not.
func (h *Hold) grow(part int, used int64) {
	p := &h.Parts[part]
	n, needed := p.step(), max(1, used-p.Reserved)
	if used > p.Reserved {
		n = min(n+needed, p.growth.ceiling-p.Reserved)
	}
	left, ok := h.reserveStep(part, n)
	least := n / 8
	if !ok && left >= needed && (left >= least || !p.growth.small) {
		n = min(n, left)
		_, ok = h.reserveStep(part, n)
	}
	if ok {
		p.growth.small = n < least
		return
	}
	if p.growth.next = used + n; used <= p.Reserved { // once more, when it is needed
		p.growth.next = p.Reserved
	}
}

// reserveStep reserves so many units more. If they do not fit, it returns how many are left.
func (h *Hold) reserveStep(part int, n int64) (left int64, ok bool) {
	g := &h.Parts[part].growth
	for i := range g.ops {
		g.ops[i].Cost = n
	}
	ctx, cancel := h.briefly()
	defer cancel()
	s := step{id: weir.NewHoldID(), part: part, reserved: n}
	h.engine.issued.put(issuedKey(s.id), struct{}{})
	r := weir.Reservation{ID: s.id, TTL: h.ttl, Tags: g.tags, Client: h.engine.hashOf(h.request), InProcess: true}
	decisions, err := h.engine.holds.Reserve(ctx, nil, r, g.ops...)
	switch {
	case err == nil && weir.Allowed(decisions):
		return 0, h.adopt(ctx, s)
	case err == nil:
		return slices.MinFunc(decisions, func(a, b weir.Decision) int { return cmp.Compare(a.Remaining, b.Remaining) }).Remaining, false
	case !errors.Is(err, weir.ErrHoldsFull): // it may be there
		_, _ = h.engine.Cancel(ctx, s.id)
	}
	return 0, false
}

// adopt makes a step a part of the hold, unless that has ended meanwhile.
func (h *Hold) adopt(ctx context.Context, s step) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		_, _ = h.engine.Cancel(ctx, s.id)
		return false
	}
	p := &h.Parts[s.part]
	h.steps = append(h.steps, s)
	p.Reserved += s.reserved
	p.growth.next = p.Reserved - p.step()/4
	h.engine.answers.change(p.counted, Reserved{Units: s.reserved, Excess: -s.reserved})
	h.engine.observeHold(SteppedHold, []SettledPart{{Rule: p.Rule.ID, Unit: p.Rule.CostUnit(), Reserved: s.reserved}})
	return true
}

// divide divides what was used of a part among its hold and its steps: each has used all of it before the
// next one was needed.
func (h *Hold) divide(part int) {
	p := &h.Parts[part]
	rest, last := p.used, -1
	for i := range h.steps {
		if h.steps[i].part == part {
			last = i
		}
	}
	if last < 0 {
		return
	}
	p.used = min(rest, p.growth.first)
	rest -= p.used
	for i := range h.steps {
		s := &h.steps[i]
		if s.part != part {
			continue
		}
		if s.used = min(rest, s.reserved); i == last {
			s.used = rest
		}
		rest -= s.used
	}
}

// settleSteps ends the further holds.
func (h *Hold) settleSteps(ctx context.Context) {
	for _, s := range h.steps {
		// If it fails, the hold expires.
		_, _ = h.engine.settle(ctx, &settlement{id: s.id, used: Units(s.used), kind: SettledHold, step: true}, nil)
	}
}
