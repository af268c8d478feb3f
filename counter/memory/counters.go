package memory

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
)

// cell is what a counter has in one window.
type cell struct {
	index  int64
	amount counter.Amount
}

// cells is a counter: its windows, the latest last.
type cells struct {
	cells   []cell
	members *distinct // nil unless it counts distinct members
}

func (c *cells) weight() int {
	n := 1 + (len(c.cells)-1)/8
	if c.members != nil {
		n += c.members.weight()
	}
	return n
}

// at is the cell of a window, or nil.
func (c *cells) at(index int64) *cell {
	if i, found := c.search(index); found {
		return &c.cells[i]
	}
	return nil
}

func (c *cells) search(index int64) (int, bool) {
	return slices.BinarySearchFunc(c.cells, index, func(x cell, index int64) int { return cmp.Compare(x.index, index) })
}

// prune drops windows that can no longer be read, once there are many.
func (c *cells) prune(current int64, kept int) {
	if len(c.cells) <= kept+kept/4+16 {
		return
	}
	live := c.cells[:0]
	for _, x := range c.cells {
		if x.index > current-int64(kept) && x.index <= current+int64(kept) {
			live = append(live, x)
		}
	}
	c.cells = append(make([]cell, 0, len(live)+8), live...)
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
	return find[*cells](&s.room, identOf(k), now)
}

// Add implements counter.Store.
func (s *Store) Add(ctx context.Context, deltas ...counter.Delta) ([]counter.Amount, error) {
	now, err := s.lock(ctx, counter.ValidateAdd(deltas))
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if err := s.fits(deltas, now); err != nil {
		return nil, err
	}
	after := make([]counter.Amount, len(deltas))
	for i := range deltas {
		after[i] = s.add(&deltas[i], now)
	}
	return after, nil
}

// fits returns an error if a counter would leave its range, or there is no room for it; any
// may be named twice. It reckons with floating-point numbers because a script in Redis has no
// others.
func (s *Store) fits(deltas []counter.Delta, now weir.Micros) error {
	sums := make(map[ident]float64, len(deltas))
	made, grows := 0, false
	for i := range deltas {
		k := &deltas[i].Key
		id := identOf(k)
		sum, known := sums[id]
		if !known {
			if _, c := s.counter(k, now); c == nil {
				made++
			} else if x := c.at(k.Window.Index(now, k.Zone)); x == nil {
				grows = true
			} else {
				sum = float64(x.amount)
				grows = grows || k.Distinct
			}
		}
		sum += float64(deltas[i].By)
		if math.Abs(sum) > float64(counter.MaxAmount) {
			return counter.ErrRange
		}
		sums[id] = sum
	}
	return s.room.claim(now, made, grows)
}

func (s *Store) add(d *counter.Delta, now weir.Micros) counter.Amount {
	return s.change(&d.Key, now, func(c *cells, x *cell) {
		if c.members == nil {
			x.amount += d.By
			return
		}
		// It may have been counted with a sketch that is gone, after the clock went back.
		x.amount = max(x.amount, c.members.add(x.index, d.Members))
	})
}

// change changes a counter in the current window, which is kept then, and returns what it
// has.
func (s *Store) change(k *counter.Key, now weir.Micros, do func(*cells, *cell)) counter.Amount {
	index := k.Window.Index(now, k.Zone)
	e, c := findOr(&s.room, identOf(k), now, func() *cells {
		if k.Distinct {
			return &cells{members: newDistinct()}
		}
		return &cells{}
	})
	i, found := c.search(index)
	if !found {
		c.cells = slices.Insert(c.cells, i, cell{index: index})
		c.prune(index, s.kept.Windows(k.Window))
	}
	x := c.at(index)
	do(c, x)
	after := x.amount
	s.room.keep(e, now, now+micros(s.kept.After(k.Window)))
	return after
}

// Get implements counter.Store.
func (s *Store) Get(ctx context.Context, keys ...counter.Key) ([]counter.Amount, error) {
	now, err := s.lock(ctx, counter.ValidateKeys(keys))
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	amounts := make([]counter.Amount, len(keys))
	for i := range keys {
		k := &keys[i]
		if _, c := s.counter(k, now); c != nil {
			if x := c.at(k.Window.Index(now, k.Zone)); x != nil {
				amounts[i] = x.amount
			}
		}
	}
	return amounts, nil
}

// Reset implements counter.Store.
func (s *Store) Reset(ctx context.Context, keys ...counter.Key) ([]counter.Amount, error) {
	now, err := s.lock(ctx, counter.ValidateKeys(keys))
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	had := make([]counter.Amount, len(keys))
	for i := range keys {
		had[i] = s.set(&keys[i], now, 0)
	}
	return had, nil
}

// Set implements counter.Store.
func (s *Store) Set(ctx context.Context, settings ...counter.Setting) ([]counter.Amount, error) {
	now, err := s.lock(ctx, counter.ValidateSet(settings))
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var changed []counter.Delta // by nothing: only their room is asked for
	for i := range settings {
		if settings[i].To != 0 {
			changed = append(changed, counter.Delta{Key: settings[i].Key})
		}
	}
	if err := s.fits(changed, now); err != nil {
		return nil, err
	}
	had := make([]counter.Amount, len(settings))
	for i := range settings {
		had[i] = s.set(&settings[i].Key, now, settings[i].To)
	}
	return had, nil
}

// set returns what a counter had. One that is set to 0 is kept no longer for that.
func (s *Store) set(k *counter.Key, now weir.Micros, to counter.Amount) (had counter.Amount) {
	if to != 0 {
		s.change(k, now, func(_ *cells, x *cell) { had, x.amount = x.amount, to })
		return had
	}
	e, c := s.counter(k, now)
	if c == nil {
		return 0
	}
	index := k.Window.Index(now, k.Zone)
	if x := c.at(index); x != nil {
		had, x.amount = x.amount, 0
	}
	if c.members != nil && c.members.at(index).index == index {
		*c.members.at(index) = sketch{index: index}
		s.room.weigh(e)
	}
	return had
}

// History implements counter.Store.
func (s *Store) History(ctx context.Context, n int, keys ...counter.Key) ([][]counter.Point, error) {
	now, err := s.lock(ctx, counter.ValidateHistory(n, keys, s.kept))
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	all := make([][]counter.Point, len(keys))
	for i := range keys {
		k := &keys[i]
		first := k.Window.Index(now, k.Zone) - int64(n) + 1
		all[i] = make([]counter.Point, n)
		for j := range all[i] {
			all[i][j].Start = k.Window.Start(first+int64(j), k.Zone)
		}
		if _, c := s.counter(k, now); c != nil {
			for _, x := range c.cells {
				if j := x.index - first; j >= 0 && j < int64(n) {
					all[i][j].Amount = x.amount
				}
			}
		}
	}
	return all, nil
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
	e, seq := find[*sequence](&s.room, id, now)
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
