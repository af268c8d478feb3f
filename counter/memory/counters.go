package memory

import (
	"context"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
)

// cells is a counter.
type cells struct {
	windows windows[counter.Amount]
	members *distinct // nil unless it counts distinct members
}

func (c *cells) weight() int {
	n := 1 + (len(c.windows)-1)/8
	if c.members != nil {
		n += c.members.weight()
	}
	return n
}

func identOf(k *counter.Key) ident {
	kind := kindCounter
	if k.Distinct {
		kind = kindDistinct
	}
	return ident{kind: kind, window: k.Window, zone: counter.ZoneName(k.Zone), group: k.Group, name: k.Name}
}

// counter finds a counter, which may not be there.
func (s *Store) counter(k *counter.Key, now weir.Micros) (*entry, *cells) {
	return findBody[*cells](&s.room, identOf(k), now)
}

// Add implements counter.Store.
func (s *Store) Add(ctx context.Context, deltas ...counter.Delta) ([]counter.Amount, error) {
	return each(ctx, s, counter.ValidateAdd(deltas), len(deltas), func(now weir.Micros) error { return s.fits(deltas, now) },
		func(i int, now weir.Micros) counter.Amount { return s.addDelta(&deltas[i], now) })
}

// fits returns an error if a counter would leave its range, or there is no room for it.
func (s *Store) fits(deltas []counter.Delta, now weir.Micros) error {
	after := sums{of: make(map[ident]float64, len(deltas))}
	for i := range deltas {
		k := &deltas[i].Key
		_, c := s.counter(k, now)
		var has *counter.Amount
		if c != nil {
			has = c.windows.at(k.Window.Index(now, k.Zone))
			after.grows = after.grows || k.Distinct
		}
		if err := after.addAmount(identOf(k), c != nil, has, deltas[i].By); err != nil {
			return err
		}
	}
	return s.room.claim(now, after.made, after.grows)
}

func (s *Store) addDelta(d *counter.Delta, now weir.Micros) counter.Amount {
	return s.change(&d.Key, now, func(c *cells, index int64, has *counter.Amount) {
		if c.members == nil {
			*has += d.By
			return
		}
		// It may have been counted with a sketch that is gone, after the clock went back.
		*has = max(*has, c.members.addMembers(index, d.Members))
	})
}

// change changes what a counter has in the current window, which is kept then, and returns it.
func (s *Store) change(k *counter.Key, now weir.Micros, do func(c *cells, index int64, has *counter.Amount)) counter.Amount {
	index, kept := k.Window.Index(now, k.Zone), s.kept.Windows(k.Window)
	e, c := findOr(&s.room, identOf(k), now, func() *cells {
		if k.Distinct {
			return &cells{members: newDistinct()}
		}
		return &cells{}
	})
	has := c.windows.open(index, kept, kept/4+16)
	do(c, index, has)
	s.room.keep(e, now, now+micros(s.kept.After(k.Window)))
	return *has
}

// Get implements counter.Store.
func (s *Store) Get(ctx context.Context, keys ...counter.Key) ([]counter.Amount, error) {
	return each(ctx, s, counter.ValidateKeys(keys), len(keys), nil, func(i int, now weir.Micros) counter.Amount {
		k := &keys[i]
		if _, c := s.counter(k, now); c != nil {
			if has := c.windows.at(k.Window.Index(now, k.Zone)); has != nil {
				return *has
			}
		}
		return 0
	})
}

// Reset implements counter.Store.
func (s *Store) Reset(ctx context.Context, keys ...counter.Key) ([]counter.Amount, error) {
	return each(ctx, s, counter.ValidateKeys(keys), len(keys), nil, func(i int, now weir.Micros) counter.Amount { return s.set(&keys[i], now, 0) })
}

// Set implements counter.Store.
func (s *Store) Set(ctx context.Context, settings ...counter.Setting) ([]counter.Amount, error) {
	var changed []counter.Delta // by nothing: only their room is asked for
	for i := range settings {
		if settings[i].To != 0 {
			changed = append(changed, counter.Delta{Key: settings[i].Key})
		}
	}
	return each(ctx, s, counter.ValidateSet(settings), len(settings), func(now weir.Micros) error { return s.fits(changed, now) },
		func(i int, now weir.Micros) counter.Amount { return s.set(&settings[i].Key, now, settings[i].To) })
}

// set returns what a counter had. One that is set to 0 is kept no longer for that.
func (s *Store) set(k *counter.Key, now weir.Micros, to counter.Amount) (had counter.Amount) {
	if to != 0 {
		s.change(k, now, func(_ *cells, _ int64, has *counter.Amount) { had, *has = *has, to })
		return had
	}
	e, c := s.counter(k, now)
	if c == nil {
		return 0
	}
	index := k.Window.Index(now, k.Zone)
	if has := c.windows.at(index); has != nil {
		had, *has = *has, 0
	}
	if c.members != nil && c.members.at(index).index == index {
		*c.members.at(index) = sketch{index: index}
		s.room.weigh(e)
	}
	return had
}

// History implements counter.Store.
func (s *Store) History(ctx context.Context, n int, keys ...counter.Key) ([][]counter.Point, error) {
	return each(ctx, s, counter.ValidateHistory(n, keys, s.kept), len(keys), nil, func(i int, now weir.Micros) []counter.Point {
		k := &keys[i]
		first, points := k.Window.Index(now, k.Zone)-int64(n)+1, make([]counter.Point, n)
		for j := range points {
			points[j].Start = k.Window.Start(first+int64(j), k.Zone)
		}
		if _, c := s.counter(k, now); c != nil {
			for _, x := range c.windows {
				if j := x.index - first; j >= 0 && j < int64(n) {
					points[j].Amount = x.value
				}
			}
		}
		return points
	})
}

// sequence is the last number that was given out.
type sequence struct{ last int64 }

func (*sequence) weight() int { return 1 }

// NextID implements counter.Store. The store may drop a sequence when the time has
// passed its last number, because the time alone is then larger.
func (s *Store) NextID(ctx context.Context, name string) (int64, error) {
	now, err := s.lock(ctx, counter.ValidateSequence(name))
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	id := ident{kind: kindSequence, name: name}
	e, seq := findBody[*sequence](&s.room, id, now)
	if e == nil {
		if err := s.room.claim(now, 1, false); err != nil {
			return 0, err
		}
		seq = &sequence{}
		e = &entry{id: id, body: seq}
	}
	seq.last = max(seq.last+1, int64(now))
	s.room.keep(e, now, weir.Micros(seq.last)+micros(24*time.Hour))
	return seq.last, nil
}
