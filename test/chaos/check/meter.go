package check

import (
	"slices"
	"time"
)

// meter counts what one key got of one limit.
type meter struct {
	bound  int64 // the most in any period, from one master
	period time.Duration
	slot   int
	events []event       // by the end of when they leave
	latest time.Duration // when the last was decided
}

// event is an allowed request. It was decided at some instant of its span, and leaves at
// some instant of another, which is the same unless it was told to wait.
type event struct {
	Span
	Leaves Span  `json:"leaves"`
	Cost   int64 `json:"cost"`
}

// excess is a stretch of time in which more was allowed than may be.
type excess struct {
	span   Span
	got    int64
	most   int64
	events []event
}

const (
	// disorder is how late an event may come, after others that ended later.
	disorder = 10 * time.Second

	// whole is by how much a delay in milliseconds may have been rounded up.
	whole = time.Millisecond
)

// add counts an event, and returns the worst excess that it makes.
//
// It looks at every stretch that ends where an event leaves. The longest such stretch is one
// period. A part of what leaves in it matters only if it was decided after some loss, so that
// fewer masters may have served.
func (m *meter) add(e event, t *Timeline) *excess {
	at, _ := slices.BinarySearchFunc(m.events, e.Leaves.To, func(one event, to time.Duration) int {
		if one.Leaves.To <= to {
			return -1
		}
		return 1
	})
	m.events = slices.Insert(m.events, at, e)
	m.latest = max(m.latest, e.To)
	var worst *excess
	for ; at < len(m.events); at++ {
		to := m.events[at].Leaves.To
		s := Span{to - m.period + m.slack(), to}
		for _, since := range append(t.fresh(Span{m.events[0].From, m.latest}, m.slot), 0) {
			if x := m.count(s, since, at, t); x != nil && (worst == nil || x.got-x.most > worst.got-worst.most) {
				worst = x
			}
		}
	}
	m.forget()
	return worst
}

// slack is how much faster or slower than ours the clock of the store may run.
func (m *meter) slack() time.Duration { return m.period/1000 + time.Millisecond }

// count sums up the events up to one that leave within the span and were decided since an
// instant.
func (m *meter) count(s Span, since time.Duration, last int, t *Timeline) *excess {
	got, decided := int64(0), Span{Open, 0}
	for i := range m.events[:last+1] {
		if e := &m.events[i]; e.isIn(s, since) {
			got += e.Cost
			decided.From, decided.To = min(decided.From, e.From), max(decided.To, e.To)
		}
	}
	if got <= m.bound {
		return nil
	}
	most := m.bound * t.lives(decided, m.slot)
	if got <= most {
		return nil
	}
	x := &excess{span: s, got: got, most: most}
	for i := range m.events[:last+1] {
		if e := &m.events[i]; e.isIn(s, since) {
			x.events = append(x.events, *e)
		}
	}
	return x
}

func (e *event) isIn(s Span, since time.Duration) bool {
	return e.Leaves.From >= s.From && e.From >= since
}

// forget drops what can be in no stretch with what is still to come.
func (m *meter) forget() {
	old := m.latest - m.period - disorder
	n := 0
	for n < len(m.events) && m.events[n].Leaves.To < old {
		n++
	}
	m.events = slices.Delete(m.events, 0, n)
}
