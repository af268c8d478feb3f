package memory

import (
	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/order"
	"github.com/weirhq/weir/queue"
)

// item is work that is not done.
type item struct {
	number  int64
	id      string
	payload []byte
	tries   int
	pushed  weir.Micros

	state queue.State
	due   weir.Micros // when a lease or a backoff is over; 0 in other states
	index int32       // in its pile

	secret string     // of the last lease, until somebody ends it; else empty
	slot   queue.Pace // at which it was released

	died   weir.Micros
	reason string
}

// Before puts the first due on top of a pile, and of those the lowest number.
func (i *item) Before(other *item) bool {
	return i.due < other.due || i.due == other.due && i.number < other.number
}

// Place is for the heap.
func (i *item) Index() *int32 { return &i.index }

// pile is items in the order in which they leave it.
type pile = order.Heap[*item]

// isDue reports whether the top's time has come.
func isDue(p pile, now weir.Micros) bool { return len(p) > 0 && p[0].due <= now }

// rank is an item's position in the order in which items leave the pile, from 1.
func rank(p pile, i *item) int64 {
	position := int64(1)
	for _, other := range p {
		if other.Before(i) {
			position++
		}
	}
	return position
}

// remembered is the ID of an item that was done.
type remembered struct {
	id    string
	until weir.Micros
	index int32
}

// Before puts what is forgotten first on top.
func (r *remembered) Before(other *remembered) bool {
	return r.until < other.until || r.until == other.until && r.id < other.id
}

// Place is for the heap.
func (r *remembered) Index() *int32 { return &r.index }

// memory of what was done: by ID, and by when to forget it.
type memory struct {
	byID  map[string]*remembered
	first order.Heap[*remembered]
}

func (m *memory) remember(id string, until weir.Micros, most int) {
	if r := m.byID[id]; r != nil {
		m.first.Remove(r)
	}
	r := &remembered{id: id, until: until}
	m.byID[id] = r
	m.first.Push(r)
	for n := 0; n < queue.MaxSweep && len(m.first) > most; n++ {
		m.forget()
	}
}

func (m *memory) forget() {
	delete(m.byID, m.first[0].id)
	m.first.Remove(m.first[0])
}

func (m *memory) knows(id string, now weir.Micros) bool {
	r := m.byID[id]
	return r != nil && r.until > now
}
