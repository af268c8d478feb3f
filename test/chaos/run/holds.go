package run

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/test/chaos/check"
	"github.com/weirhq/weir/test/chaos/plan"
)

// holders are clients that reserve and settle, each with one account after the other, and crowds
// that have more requests than places.
type holders struct {
	*load
	rules, places plan.Rules

	calls chan struct{} // that are made at once

	next atomic.Int64 // number of an account or a crowd
	open sync.Map     // accounts by number, without crowds
}

const (
	accountsAtOnce = 8
	crowdsAtOnce   = 4

	// endsWithin is for how long a client tries to end a hold. It is more than most faults take.
	endsWithin = 7 * time.Second

	// readsWithin is for how long a client waits until what is charged is right. Settlements
	// that are pending are made some time after the store is well.
	readsWithin = 15 * time.Second
	readsEvery  = 200 * time.Millisecond

	// readsAgain is when what was right must still be.
	readsAgain = 3 * time.Second
)

// start lets clients open accounts, and crowds come, until the context ends. One account after the other has many holds.
func (h *holders) start(ctx context.Context, seed uint64, many int) {
	account := func(r *rand.Rand, number int, a plan.Account) check.Group {
		h.open.Store(number, a)
		defer h.open.Delete(number)
		return new(h.play(ctx, r, a))
	}
	h.repeat(ctx, accountsAtOnce, seed, 1<<20, func(r *rand.Rand, number int) check.Group {
		return account(r, number, plan.DrawAccount(r, h.rules, number))
	})
	h.repeat(ctx, 1, seed, 1<<22, func(r *rand.Rand, number int) check.Group {
		return account(r, number, plan.DrawMany(r, h.rules, number, many))
	})
	h.repeat(ctx, crowdsAtOnce, seed, 1<<21, func(r *rand.Rand, number int) check.Group {
		return h.crowd(ctx, r, plan.DrawCrowd(r, h.places, number))
	})
}

// repeat lets so many clients play one account after the other, each with a number of its own.
func (h *holders) repeat(ctx context.Context, clients int, seed, first uint64, play func(r *rand.Rand, number int) check.Group) {
	for n := range clients {
		r := rand.New(rand.NewPCG(seed, first+uint64(n)))
		h.running.Go(func() {
			for ctx.Err() == nil {
				if known := play(r, int(h.next.Add(1))); ctx.Err() == nil {
					h.checker.NoteGroup(known)
				}
			}
		})
	}
}

// call makes a call about a hold. After there was to be quiet, thousands wait, and are not to be made at once.
func (h *holders) call(to *instance, path string, request any, s *said) check.Call {
	h.calls <- struct{}{}
	defer func() { <-h.calls }()
	return h.load.call(to, path, request, s)
}

// keys are those of the accounts that are open.
func (h *holders) keys() (keys []string) {
	for _, open := range h.open.Range {
		a := open.(plan.Account)
		keys = append(keys, "user:"+a.User, "ip:"+a.IP)
	}
	slices.Sort(keys)
	return keys
}

// play makes the holds of an account and reads what was charged in the end: as soon as it is
// right, and some time later.
func (h *holders) play(ctx context.Context, r *rand.Rand, a plan.Account) check.Account {
	known := h.holds(ctx, r, &a)
	last := h.readUntil(ctx, r, &a, func(one *check.Reading) bool { return h.checker.Fits(&known, one) })
	if last == nil {
		return known
	}
	known.Readings = []check.Reading{*last}
	h.sleep(ctx, readsAgain)
	if again := h.read(h.any(r), &a); again != nil {
		known.Readings = append(known.Readings, *again)
	}
	return known
}

// crowd makes the holds of a crowd, and reads what is taken when all places must be free.
func (h *holders) crowd(ctx context.Context, r *rand.Rand, a plan.Account) *check.Crowd {
	known := &check.Crowd{Account: h.holds(ctx, r, &a)}
	h.sleep(ctx, h.checker.FreeBy(known)-h.now())
	if last := h.readUntil(ctx, r, &a, func(*check.Reading) bool { return true }); last != nil {
		known.Readings = []check.Reading{*last}
	}
	return known
}

// holds makes the holds of an account, each by itself.
func (h *holders) holds(ctx context.Context, r *rand.Rand, a *plan.Account) check.Account {
	known := check.Account{Begun: h.now(), Path: a.Path, User: a.User, IP: a.IP, Holds: make([]check.Hold, len(a.Holds))}
	var all sync.WaitGroup
	for i := range a.Holds {
		own := rand.New(rand.NewPCG(r.Uint64(), uint64(i)))
		all.Go(func() { known.Holds[i] = h.hold(ctx, own, a, &a.Holds[i]) })
	}
	all.Wait()
	return known
}

// readUntil reads what is charged until that is right, and returns what was read last; nil for
// nothing.
func (h *holders) readUntil(ctx context.Context, r *rand.Rand, a *plan.Account, right func(*check.Reading) bool) (last *check.Reading) {
	for until := h.now() + readsWithin; h.now() < until && ctx.Err() == nil; h.sleep(ctx, readsEvery) {
		if one := h.read(h.any(r), a); one != nil {
			if last = one; right(one) {
				break
			}
		}
	}
	return last
}

func (h *holders) any(r *rand.Rand) *instance { return h.fleet[r.IntN(len(h.fleet))] }

func (h *holders) sleep(ctx context.Context, d time.Duration) { _ = clock.Sleep(ctx, d) }

// hold plays one hold from its reservation to its end.
func (h *holders) hold(ctx context.Context, r *rand.Rand, a *plan.Account, p *plan.Hold) check.Hold {
	h.sleep(ctx, p.After)
	known := check.Hold{Cost: p.Cost, TTL: p.TTL}
	to := h.any(r)
	var s said
	known.Reserve = h.call(to, "/v1/reserve", map[string]any{"path": a.Path, "user": a.User, "ip": a.IP, "cost": p.Cost, "ttl_ms": p.TTL.Milliseconds()}, &s)
	known.ID = s.Hold
	if known.ID == "" || known.Reserve.Status != http.StatusOK {
		return known
	}
	for range p.Extends {
		h.sleep(ctx, time.Duration(500+r.Int64N(800))*time.Millisecond)
		c := h.call(h.any(r), "/v1/extend", map[string]any{"hold": known.ID, "ttl_ms": p.TTL.Milliseconds()}, new(said))
		if c.Status == http.StatusServiceUnavailable { // as documented while the store is unavailable
			c.Status = http.StatusAccepted
		}
		known.Extends = append(known.Extends, c)
	}
	if p.End == plan.Leave || p.End == plan.Late {
		h.sleep(ctx, p.TTL+500*time.Millisecond)
		if p.End == plan.Late {
			known.Ends = append(known.Ends, h.settle(h.whom(r, to, &known), known.ID, p.Used))
		}
		return known
	}
	h.sleep(ctx, p.Work)
	h.end(ctx, r, to, p, &known)
	return known
}

// whom is who can settle a hold: anybody, or, if it was reserved without the store, only the
// instance that did.
func (h *holders) whom(r *rand.Rand, to *instance, known *check.Hold) *instance {
	if known.Reserve.Degraded {
		return to
	}
	return h.any(r)
}

// end settles a hold until it is known what has become of it: each time at any instance and
// with another number.
func (h *holders) end(ctx context.Context, r *rand.Rand, to *instance, p *plan.Hold, known *check.Hold) {
	used := p.Used
	try := func() string {
		known.Ends = append(known.Ends, h.settle(h.whom(r, to, known), known.ID, used))
		used++
		return known.Ends[len(known.Ends)-1].State
	}
	if p.End == plan.Race {
		one, two := h.whom(r, to, known), h.whom(r, to, known)
		var other check.Call
		var both sync.WaitGroup
		both.Go(func() { other = h.settle(two, known.ID, used+1) })
		known.Ends = append(known.Ends, h.settle(one, known.ID, used))
		both.Wait()
		known.Ends = append(known.Ends, other)
		used += 2
	}
	for until := h.now() + endsWithin; h.now() < until && ctx.Err() == nil; h.sleep(ctx, p.Pause+time.Duration(50+r.Int64N(150))*time.Millisecond) {
		if state := try(); state != "" && state != "pending" {
			break
		}
	}
	if p.Again {
		try()
	}
}

// settle calls settle, or cancel if nothing was used.
func (h *holders) settle(to *instance, id string, used int64) check.Call {
	path, body := "/v1/settle", map[string]any{"hold": id, "used": used}
	if used == 0 {
		path, body = "/v1/cancel", map[string]any{"hold": id}
	}
	var s said
	c := h.call(to, path, body, &s)
	c.Used = used
	switch c.Status {
	case http.StatusNotFound:
		c.State = "unknown"
	case http.StatusConflict:
		c.State = "expired"
	}
	if c.State == "settled" {
		c.Got = map[string]int64{}
		for _, p := range s.Parts {
			c.Got[p.Rule] = p.Used - p.Excess
		}
	}
	return c
}

// read reads what is charged; nil if that is unknown.
func (h *holders) read(to *instance, a *plan.Account) *check.Reading {
	var s said
	c := h.call(to, "/v1/check", map[string]any{"path": a.Path, "user": a.User, "ip": a.IP, "peek": true}, &s)
	if c.Status != http.StatusOK || s.Degraded {
		return nil
	}
	r := &check.Reading{Span: c.Span, Charged: map[string]int64{}}
	for _, result := range s.Results {
		r.Charged[result.Rule] = result.Limit - result.Remaining
	}
	return r
}
