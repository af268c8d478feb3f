package weir_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// A leaseHistory is a random one of two holders and a process that asks exactly, with delays and losses, on one
// key. Time goes on by one clock. The store's is behind it, and now and then further behind.
type leaseHistory struct {
	*rand.Rand
	limit   *weir.Compiled
	largest int64 // N at any time
	account weir.Account
	now     weir.Micros
	behind  weir.Micros
	moves   bool // the store's clock
	holders [2]historyHolder
	queue   []historyEvent // in the order of their times

	admitted []release // what oracles know
	wrong    string
	taken    []historyTake
}

// historyTake is a charge that may be refunded.
type historyTake struct {
	receipt weir.Receipt
	units   int64
	at      weir.Micros
}

type historyEvent struct {
	at weir.Micros
	do func()
}

// historyHolder keeps to the rules of holders.
type historyHolder struct {
	id                  byte
	seq                 int64
	spent, charged, may int64
	deadline            weir.Micros
}

func (h *leaseHistory) after(delay weir.Micros, do func()) {
	e := historyEvent{h.now + delay, do}
	i, _ := slices.BinarySearchFunc(h.queue, e, func(a, b historyEvent) int { return int(a.at - b.at) })
	h.queue = slices.Insert(h.queue, i, e)
}

func (h *leaseHistory) period() int64 { return h.limit.Limit().Period.Microseconds() }

// delay is that of a message: as a rule a moment.
func (h *leaseHistory) delay() weir.Micros {
	switch h.IntN(8) {
	case 0:
		return weir.Micros(h.Int64N(3 * h.period()))
	case 1, 2:
		return 0
	}
	return weir.Micros(h.Int64N(1 + h.period()/8))
}

// open brings the account to the store's now.
func (h *leaseHistory) open() weir.Micros {
	if h.moves && h.IntN(30) == 0 {
		h.behind += weir.Micros(h.Int64N(2 * h.period()))
	}
	now := h.now - h.behind
	h.account.Expire(h.limit, now)
	return now
}

// send sends a message of a holder, and a request with it.
func (h *leaseHistory) send(who int) {
	p := &h.holders[who]
	p.seq++
	if h.IntN(3) == 0 { // it gives something up, and stops spending it
		p.may = min(p.may, p.spent+h.Int64N(1+max(0, p.may-p.spent)))
	}
	m := weir.LeaseOp{
		Op: weir.Op{Key: "k", Limit: h.limit, Leave: h.leave()}, ID: weir.LeaseID{byte(who) + 1, p.id}, Seq: p.seq,
		Spent: p.spent, Charged: p.charged, Keep: p.may, Term: time.Duration(1+h.Int64N(2*h.period())) * time.Microsecond,
	}
	if h.IntN(2) == 0 {
		m.Cost = 1 + h.Int64N(2)
	}
	if h.IntN(4) > 0 {
		m.Want = 1 + h.Int64N(2*h.limit.Limit().N)
	}
	sent := h.now
	for range []int{1, 1, 1, 1, 1, 0, 0, 2}[h.IntN(8)] {
		h.after(h.delay(), func() {
			m.Limit = h.limit // which may have been changed
			a := h.arrive(m)
			if h.IntN(6) > 0 {
				h.after(h.delay(), func() { h.hear(who, m, a, sent) })
			}
		})
	}
}

func (h *leaseHistory) leave() int64 {
	if h.IntN(4) > 0 {
		return 0
	}
	return h.Int64N(1 + h.limit.Capacity()/2)
}

func (h *leaseHistory) arrive(m weir.LeaseOp) weir.LeaseAnswer {
	now := h.open()
	a := weir.LeaseAll(nil, now, []*weir.Account{&h.account}, []weir.LeaseOp{m})[0]
	if a.Allowed && m.Cost > 0 {
		h.admit(m.Cost)
		h.taken = append(h.taken, historyTake{a.Receipt, m.Cost, h.now})
	}
	h.isTrue(now)
	return a
}

func (h *leaseHistory) hear(who int, m weir.LeaseOp, a weir.LeaseAnswer, sent weir.Micros) {
	p := &h.holders[who]
	if m.ID[1] != p.id || m.Seq != p.seq {
		return
	}
	if a.Drop {
		*p = historyHolder{id: p.id + 1}
		return
	}
	p.may, p.charged, p.deadline = a.Granted, a.Charged, sent.Add(m.Term)
	h.isTrue(h.open())
}

func (h *leaseHistory) fail(format string, args ...any) {
	if h.wrong == "" {
		h.wrong = fmt.Sprintf("%+v at %d, the store's clock %d behind: ", h.limit.Limit(), h.now, h.behind) + fmt.Sprintf(format, args...)
	}
}

func (h *leaseHistory) admit(units int64) { h.admitted = append(h.admitted, release{h.now, units}) }

// spend lets a holder spend what it may, or settle for more.
func (h *leaseHistory) spend(p *historyHolder) {
	if may := p.may - p.spent; may > 0 && h.now < p.deadline {
		units := 1 + h.Int64N(may)
		p.spent += units
		h.admit(units)
	}
	if h.IntN(20) == 0 && p.seq > 0 {
		p.spent += 1 + h.Int64N(h.limit.Capacity())
	}
}

// ask takes exactly, whether or not it fits.
func (h *leaseHistory) ask(always bool) {
	now := h.open()
	op := weir.Op{Key: "k", Limit: h.limit, Cost: 1 + h.Int64N(3), Leave: h.leave(), Always: always}
	if h.IntN(5) == 0 {
		op.Cost = 1 + h.Int64N(h.limit.Capacity())
	}
	d := h.decide(&op, now, true)
	if d.Allowed {
		h.admit(op.Cost)
	}
	if units := op.Cost - d.Excess; d.Receipt != 0 {
		at := h.now
		if !d.Allowed {
			at = -1 // a debt, which no oracle knows
		}
		h.taken = append(h.taken, historyTake{d.Receipt, units, at})
	}
	h.isTrue(now)
}

func (h *leaseHistory) decide(op *weir.Op, now weir.Micros, keep bool) weir.Decision {
	charge := []weir.Pending{{Op: op, Prev: h.account.State, Tail: h.account.Tail, Leased: h.account.Out}}
	d := weir.DecideAll(nil, now, charge)[0]
	if keep {
		h.account.Keep(h.limit, charge[0].Next)
	}
	return d
}

// refund gives back what a request was charged, as if it had never been made.
func (h *leaseHistory) refund() {
	if len(h.taken) == 0 {
		return
	}
	i := h.IntN(len(h.taken))
	c := h.taken[i]
	h.taken = slices.Delete(h.taken, i, i+1)
	if a := h.limit.Algorithm(); a == weir.TokenBucket || a == weir.LeakyBucket {
		h.taken = nil // they drain earlier now than their receipts say, so more would come back than there is
	}
	now := h.open()
	h.account.Refund(&weir.Op{Key: "k", Limit: h.limit, Cost: c.units, Receipt: c.receipt})
	if c.at >= 0 {
		j := slices.Index(h.admitted, release{c.at, c.units})
		h.admitted = slices.Delete(h.admitted, j, j+1)
	}
	h.isTrue(now)
}

func (h *leaseHistory) reset() {
	now := h.open()
	h.account.Record = weir.Record{}
	h.admitted, h.taken = nil, nil
	h.isTrue(now)
}

// change changes N, and leaves the kind of limit as it is.
func (h *leaseHistory) change() {
	l := h.limit.Limit()
	l.N = 1 + h.Int64N(15)
	if limit, err := l.Compile(); err == nil {
		h.limit, h.largest = limit, max(h.largest, l.N)
	}
}

// isTrue checks the account, and what a decision on it says.
func (h *leaseHistory) isTrue(now weir.Micros) {
	a := &h.account
	var out int64
	for i := range a.Leases {
		out += max(0, a.Leases[i].Granted-a.Leases[i].Spent)
	}
	if out != a.Out {
		h.fail("%d units are on lease, and the sum is %d", out, a.Out)
	}
	for i := range h.holders {
		p := &h.holders[i]
		if h.now >= p.deadline || p.may <= p.spent {
			continue
		}
		j := slices.IndexFunc(a.Leases, func(l weir.Lease) bool { return l.ID == weir.LeaseID{byte(i) + 1, p.id} })
		if j < 0 || a.Leases[j].Term == 0 || a.Leases[j].Granted < p.may {
			h.fail("holder %+v, but the store knows %+v", *p, a.Leases)
		}
	}
	op := weir.Op{Key: "k", Limit: h.limit, Leave: h.leave()}
	op.Cost = weir.PeekAll(nil, now, []weir.Pending{{Op: &op, Prev: a.State, Tail: a.Tail, Leased: a.Out}})[0].Remaining
	if op.Cost > 0 && !h.decide(&op, now, false).Allowed {
		h.fail("%d units remain, and cannot be taken", op.Cost)
	}
	op.Cost++
	op.Cost = min(op.Cost+h.Int64N(3), max(op.Cost, h.limit.Capacity()-op.Leave))
	d := h.decide(&op, now, false)
	if d.Allowed {
		h.fail("more than what remains was taken: %+v", d)
	}
	// It waits as if what is on lease were charged now.
	r := weir.Record{State: a.State, Tail: slices.Clone(a.Tail)}
	if a.Out > 0 {
		charge := weir.Op{Key: "k", Limit: h.limit, Cost: a.Out, Always: true}
		next, charged := charge.Decide(r.State, r.Tail, now)
		if charged.Excess > 0 {
			return
		}
		r.Keep(h.limit, next)
	}
	if want := op.Peek(r.State, r.Tail, now); d.RetryAfter != want.RetryAfter {
		h.fail("%+v with %d units on lease: %+v, want as if they were charged %+v", op, a.Out, d, want)
	}
}

// run lives through a history, and returns the most that was admitted, of what may be.
func (h *leaseHistory) run() (most, bound int64) {
	for range 200 {
		switch h.IntN(6) {
		case 0: // at the same instant
		case 1:
			h.now += weir.Micros(h.Int64N(2 * h.period()))
		default:
			h.now += weir.Micros(h.Int64N(1 + h.period()/h.limit.Capacity()))
		}
		now := h.now
		for len(h.queue) > 0 && h.queue[0].at <= now {
			e := h.queue[0]
			h.queue = h.queue[1:]
			h.now = e.at
			e.do()
		}
		h.now = now
		who := h.IntN(len(h.holders))
		switch p := &h.holders[who]; h.IntN(40) {
		case 0, 1, 2, 3, 4, 5, 6:
			h.send(who)
		case 7:
			*p = historyHolder{id: p.id + 1} // it died, and came again
		case 8:
			h.ask(true)
		case 9:
			h.refund()
		case 10:
			if h.IntN(4) == 0 {
				h.reset()
			}
		case 11:
			if h.IntN(4) == 0 {
				h.change()
			}
		case 12, 13, 14, 15, 16, 17, 18, 19, 20:
			h.ask(false)
		default:
			h.spend(p)
		}
		if h.wrong != "" {
			return 0, 0
		}
	}
	return h.judge()
}

// judge compares what was admitted with what the limit allows.
func (h *leaseHistory) judge() (most, bound int64) {
	if !h.limit.FollowsCalendar() {
		l := h.limit.Limit()
		l.N = h.largest
		limit, err := l.Compile()
		if err != nil {
			return 0, 0
		}
		if most, bound = worst(h.admitted, weir.Micros(h.period())), limit.Bound(1); most > bound {
			h.fail("%d units were admitted in a period, and %d is the most: %v", most, bound, h.admitted)
		}
	}
	if h.limit.Algorithm() != weir.FixedWindow || h.moves {
		return most, bound
	}
	windows := map[weir.Micros]int64{}
	most, bound = 0, h.largest
	for _, r := range h.admitted {
		begin := r.at - r.at%weir.Micros(h.period())
		if b, ok := h.limit.Periods(r.at); ok {
			begin = b[1]
		}
		windows[begin] += r.units
		most = max(most, windows[begin])
	}
	if most > bound {
		h.fail("%d units were admitted in a window, and %d is the most: %v", most, bound, h.admitted)
	}
	return most, bound
}

// In random histories of leases, under any limit, never more is admitted than without leases, and what
// decisions say is true.
func TestLeaseHistories(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	histories := 5000
	if testkit.Race {
		histories = 300
	}
	reached, first := map[weir.Algorithm]int{}, rand.Uint64()
	for seed := first; seed < first+uint64(histories); seed++ {
		h := &leaseHistory{Rand: rand.New(rand.NewPCG(seed, 0))}
		l := weir.Limit{Algorithm: weir.Algorithms()[h.IntN(6)], N: 1 + h.Int64N(12), Period: time.Duration(1+h.Int64N(60)) * time.Microsecond}
		h.moves = h.IntN(4) == 0
		switch bucket := l.Algorithm == weir.TokenBucket || l.Algorithm == weir.LeakyBucket; {
		case bucket && h.IntN(2) == 0:
			l.Burst = 1 + h.Int64N(20)
		case l.Algorithm == weir.SlidingBuckets && l.Period > 2*time.Microsecond:
			l.Buckets = 2 + h.IntN(int(min(12, l.Period.Microseconds()))-1)
		case l.Algorithm == weir.FixedWindow && h.IntN(3) == 0:
			l.Period, l.Zone, h.moves = []time.Duration{time.Hour, 24 * time.Hour, weir.Month}[h.IntN(3)], berlin, false
		}
		if h.limit, err = l.Compile(); err != nil {
			t.Fatal(err)
		}
		h.largest = l.N
		h.now = 1_767_225_600_000_000 + weir.Micros(h.Int64N(3*h.period()))
		if most, bound := h.run(); most == bound {
			reached[l.Algorithm]++
		}
		if h.wrong != "" {
			t.Fatalf("seed %d: %s", seed, h.wrong)
		}
	}
	t.Logf("%d histories from seed %d; the bound was reached by %v", histories, first, reached)
}
