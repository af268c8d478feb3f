package run

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/test/chaos/check"
	"github.com/weirhq/weir/test/chaos/plan"
)

// holders are clients that reserve and settle, each with one account after the other.
type holders struct {
	*load
	rules plan.Rules

	mu   sync.Mutex
	next int
	open map[int]plan.Account
}

const (
	accountsAtOnce = 8

	// endsWithin is for how long a client tries to end a hold. It is more than most faults take.
	endsWithin = 7 * time.Second

	// readsWithin is for how long a client waits until what is charged is right. Settlements
	// that are pending are made some time after the store is well.
	readsWithin = 15 * time.Second
	readsEvery  = 200 * time.Millisecond

	// readsAgain is when what was right must still be.
	readsAgain = 3 * time.Second
)

func newHolders(l *load, rules plan.Rules) *holders {
	return &holders{load: l, rules: rules, open: map[int]plan.Account{}}
}

// start lets clients open accounts until the context ends.
func (h *holders) start(ctx context.Context, seed uint64) {
	for n := range accountsAtOnce {
		r := rand.New(rand.NewPCG(seed, uint64(1<<20+n)))
		h.running.Go(func() {
			for ctx.Err() == nil {
				number, a := h.draw(r)
				known := h.play(ctx, r, a)
				if ctx.Err() == nil {
					h.checker.NoteGroup(&known)
				}
				h.forget(number)
			}
		})
	}
}

func (h *holders) draw(r *rand.Rand) (int, plan.Account) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	h.open[h.next] = plan.DrawAccount(r, h.rules, h.next)
	return h.next, h.open[h.next]
}

func (h *holders) forget(number int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, number)
}

// keys are those of the accounts that are open.
func (h *holders) keys() (keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.open {
		keys = append(keys, "user:"+a.User, "ip:"+a.IP)
	}
	slices.Sort(keys)
	return keys
}

// play makes the holds of an account and reads what was charged in the end: as soon as it is
// right, and some time later.
func (h *holders) play(ctx context.Context, r *rand.Rand, a plan.Account) check.Account {
	known := check.Account{Begun: h.now(), Path: a.Path, User: a.User, IP: a.IP, Holds: make([]check.Hold, len(a.Holds))}
	var all sync.WaitGroup
	for i := range a.Holds {
		own := rand.New(rand.NewPCG(r.Uint64(), uint64(i)))
		all.Go(func() { known.Holds[i] = h.hold(ctx, own, &a, &a.Holds[i]) })
	}
	all.Wait()
	var last *check.Reading
	for until := h.now() + readsWithin; h.now() < until && ctx.Err() == nil; h.sleep(ctx, readsEvery) {
		if one := h.read(h.any(r), &a); one != nil {
			if last = one; h.checker.Fits(&known, one) {
				break
			}
		}
	}
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

func (h *holders) any(r *rand.Rand) *instance { return h.fleet[r.IntN(len(h.fleet))] }

func (h *holders) sleep(ctx context.Context, d time.Duration) { _ = clock.Sleep(ctx, d) }

// hold plays one hold from its reservation to its end.
func (h *holders) hold(ctx context.Context, r *rand.Rand, a *plan.Account, p *plan.Hold) check.Hold {
	h.sleep(ctx, p.After)
	known := check.Hold{Cost: p.Cost, TTL: p.TTL}
	to := h.any(r)
	var s said
	known.Reserve = h.call(to, "/v1/reserve", map[string]any{"path": a.Path, "user": a.User, "ip": a.IP, "cost": p.Cost, "ttl_ms": p.TTL.Milliseconds()}, &s)
	known.Reserve.Allowed, known.Reserve.Degraded, known.Reserve.By, known.ID = s.Allowed, s.Degraded, s.by(), s.Hold
	if known.ID == "" || known.Reserve.Status != http.StatusOK {
		return known
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
	for until := h.now() + endsWithin; h.now() < until && ctx.Err() == nil; h.sleep(ctx, time.Duration(50+r.Int64N(150))*time.Millisecond) {
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
	case http.StatusOK, http.StatusAccepted:
		c.State = s.State
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

// crowds are clients with more requests than places, each one after the other.
type crowds struct {
	*holders
	rules plan.Rules
}

const crowdsAtOnce = 4

// start lets crowds come until the context ends.
func (h *crowds) start(ctx context.Context, seed uint64) {
	for n := range crowdsAtOnce {
		r := rand.New(rand.NewPCG(seed, uint64(1<<21+n)))
		h.running.Go(func() {
			for number := n; ctx.Err() == nil; number += crowdsAtOnce {
				a := plan.DrawCrowd(r, h.rules, number)
				known := h.play(ctx, r, &a)
				if ctx.Err() == nil {
					h.checker.NoteGroup(&known)
				}
			}
		})
	}
}

// play lets a crowd come and go, and reads what is taken when all places must be free.
func (h *crowds) play(ctx context.Context, r *rand.Rand, a *plan.Crowd) check.Crowd {
	known := check.Crowd{Begun: h.now(), Path: a.Path, User: a.User, Stays: make([]check.Stay, len(a.Visits))}
	var all sync.WaitGroup
	for i := range a.Visits {
		own := rand.New(rand.NewPCG(r.Uint64(), uint64(i)))
		all.Go(func() { known.Stays[i] = h.visit(ctx, own, a, &a.Visits[i]) })
	}
	all.Wait()
	h.sleep(ctx, h.checker.FreeBy(&known)-h.now())
	for until := h.now() + readsWithin; known.Last == nil && h.now() < until && ctx.Err() == nil; h.sleep(ctx, readsEvery) {
		known.Last = h.read(h.any(r), &plan.Account{Path: a.Path, User: a.User})
	}
	return known
}

// visit takes a place and, unless it is killed, gives it back.
func (h *crowds) visit(ctx context.Context, r *rand.Rand, a *plan.Crowd, p *plan.Visit) (known check.Stay) {
	h.sleep(ctx, p.After)
	var s said
	ttl := plan.PlaceTTL.Milliseconds()
	known.Reserve = h.call(h.any(r), "/v1/reserve", map[string]any{"path": a.Path, "user": a.User, "ttl_ms": ttl}, &s)
	known.Reserve.Allowed, known.Reserve.Degraded = s.Allowed, s.Degraded
	if s.Hold == "" || known.Reserve.Status != http.StatusOK {
		return known
	}
	for range p.Extends {
		h.sleep(ctx, time.Duration(500+r.Int64N(800))*time.Millisecond)
		var extended said
		c := h.call(h.any(r), "/v1/extend", map[string]any{"hold": s.Hold, "ttl_ms": ttl}, &extended)
		if c.Status == http.StatusOK {
			c.State = extended.State
		} else if c.Status == http.StatusServiceUnavailable { // as documented while the store is unavailable
			c.Status = http.StatusAccepted
		}
		known.Extends = append(known.Extends, c)
	}
	h.sleep(ctx, p.Work)
	if !p.Killed {
		known.Ends = append(known.Ends, h.settle(h.any(r), s.Hold, 0))
	}
	return known
}
