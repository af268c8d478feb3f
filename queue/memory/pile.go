package memory

import (
	"container/heap"

	"github.com/weirhq/weir"
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
	index int         // in its pile

	secret string     // of the last lease, until somebody ends it; else empty
	slot   queue.Pace // at which it was released

	died   weir.Micros
	reason string
}

// pile is a heap of items, the first due on top, and of those the lowest number.
type pile []*item

func (p pile) Len() int { return len(p) }

func (p pile) Less(a, b int) bool {
	if p[a].due != p[b].due {
		return p[a].due < p[b].due
	}
	return p[a].number < p[b].number
}

func (p pile) Swap(a, b int) {
	p[a], p[b] = p[b], p[a]
	p[a].index, p[b].index = a, b
}

func (p *pile) Push(x any) {
	i := x.(*item)
	i.index = len(*p)
	*p = append(*p, i)
}

func (p *pile) Pop() any {
	old := *p
	i := old[len(old)-1]
	old[len(old)-1] = nil
	*p = old[:len(old)-1]
	return i
}

// isDue reports whether the top's time has come.
func (p pile) isDue(now weir.Micros) bool { return len(p) > 0 && p[0].due <= now }

// rank is an item's position in the order in which items leave the pile, from 1.
func (p pile) rank(i *item) int64 {
	rank := int64(1)
	for _, other := range p {
		if other.due < i.due || other.due == i.due && other.number < i.number {
			rank++
		}
	}
	return rank
}

// remembered is the ID of an item that was done.
type remembered struct {
	id    string
	until weir.Micros
	index int
}

// memory of what was done: by ID, and by when to forget it.
type memory struct {
	byID  map[string]*remembered
	first forgetting
}

func (m *memory) add(id string, until weir.Micros, most int) {
	if r := m.byID[id]; r != nil {
		heap.Remove(&m.first, r.index)
	}
	r := &remembered{id: id, until: until}
	m.byID[id] = r
	heap.Push(&m.first, r)
	for n := 0; n < queue.MaxSweep && len(m.first) > most; n++ {
		m.forget()
	}
}

func (m *memory) forget() {
	delete(m.byID, heap.Pop(&m.first).(*remembered).id)
}

func (m *memory) knows(id string, now weir.Micros) bool {
	r := m.byID[id]
	return r != nil && r.until > now
}

// forgetting is a heap of what is remembered.
type forgetting []*remembered

func (f forgetting) Len() int { return len(f) }

func (f forgetting) Less(a, b int) bool {
	if f[a].until != f[b].until {
		return f[a].until < f[b].until
	}
	return f[a].id < f[b].id
}

func (f forgetting) Swap(a, b int) {
	f[a], f[b] = f[b], f[a]
	f[a].index, f[b].index = a, b
}

func (f *forgetting) Push(x any) {
	r := x.(*remembered)
	r.index = len(*f)
	*f = append(*f, r)
}

func (f *forgetting) Pop() any {
	old := *f
	r := old[len(old)-1]
	old[len(old)-1] = nil
	*f = old[:len(old)-1]
	return r
}
