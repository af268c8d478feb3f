package archive

import (
	"cmp"
	"math"
	"slices"

	"github.com/weirhq/weir/internal/estimate"
	"github.com/weirhq/weir/internal/order"
)

// Entry is a frequent key. It was counted at least Count-Error and at most Count times.
type Entry struct {
	Key   string `json:"key"`
	Count int64  `json:"count"`
	Error int64  `json:"error"`
}

// Sketch holds the most frequent keys of a time range. Sketches can be merged; the
// errors of the entries grow by the precision that is lost.
type Sketch struct {
	Entries []Entry // largest Count first
	Floor   int64   // maximum count of a key that has no entry
	Total   int64   // requests that had a key; each counts once, even if it had several keys
}

// Merge adds another sketch. A key with an entry in only one of them may have been
// counted up to Floor times in the other.
func (s *Sketch) Merge(other *Sketch) {
	if len(other.Entries) == 0 && other.Floor == 0 {
		s.Total += other.Total
		return
	}
	*s = SumSketches([]*Sketch{s, other})
}

// SumSketches returns what merging sketches one after the other would, in the time that
// one of them takes.
func SumSketches(all []*Sketch) Sketch {
	var sum Sketch
	at := map[string]int{}
	for _, s := range all {
		sum.Total += s.Total
		for _, e := range s.Entries {
			i, ok := at[e.Key]
			if !ok {
				i = len(sum.Entries)
				at[e.Key] = i
				sum.Entries = append(sum.Entries, Entry{Key: e.Key})
			}
			// What it has here, rather than the floor that all have in the end.
			sum.Entries[i].Count += e.Count - s.Floor
			sum.Entries[i].Error += e.Error - s.Floor
		}
		sum.Floor += s.Floor
	}
	for i := range sum.Entries {
		sum.Entries[i].Count += sum.Floor
		sum.Entries[i].Error += sum.Floor
	}
	sum.order()
	return sum
}

// Of returns how often a key came at most, if it is among the entries; 0 otherwise.
func (s *Sketch) Of(key string) int64 {
	for i := range s.Entries {
		if s.Entries[i].Key == key {
			return s.Entries[i].Count
		}
	}
	return 0
}

// Trim drops all but the n largest entries.
func (s *Sketch) Trim(n int) {
	if len(s.Entries) <= n {
		return
	}
	s.Floor = max(s.Floor, s.Entries[n].Count)
	s.Entries = slices.Clip(slices.Clone(s.Entries[:n]))
}

func (s *Sketch) order() {
	slices.SortFunc(s.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
	})
}

// Distinct estimates how many different values were added, in 128 bytes, with the
// HyperLogLog algorithm. The standard error is 9 %, and less below a hundred values.
// The zero value is empty.
type Distinct struct {
	registers [registers]uint8
}

const (
	registerBits = 7
	registers    = 1 << registerBits
)

// Add adds a value by its hash. The bits of the hash must be evenly distributed.
func (d *Distinct) Add(hash uint64) {
	at, rank := estimate.Register(hash, registerBits)
	d.registers[at] = max(d.registers[at], rank)
}

// Merge adds the values of another Distinct. Values in both count once.
func (d *Distinct) Merge(other *Distinct) {
	for i, rank := range other.registers {
		d.registers[i] = max(d.registers[i], rank)
	}
}

// Count returns the estimate.
func (d *Distinct) Count() int64 {
	counts := make([]int32, estimate.Ranks(registerBits))
	for _, rank := range d.registers {
		counts[rank]++
	}
	return int64(math.Round(estimate.Distinct(counts)))
}

// Clients counts the different clients, and those that were denied at least once.
type Clients struct{ All, Denied Distinct }

// Add counts a client by its hash.
func (c *Clients) Add(hash uint64, denied bool) {
	c.All.Add(hash)
	if denied {
		c.Denied.Add(hash)
	}
}

// Merge adds other clients.
func (c *Clients) Merge(other *Clients) {
	c.All.Merge(&other.All)
	c.Denied.Merge(&other.Denied)
}

// Counter finds the most frequent keys in bounded memory, with the Space-Saving
// algorithm. It has room for size keys. When it is full, a new key replaces the rarest
// one and inherits its count, which becomes the error of the new key. So every key with
// more than 1/size of all counts is found, and no count is too high by more than 1/size
// of all counts. It is not safe for concurrent use.
type Counter struct {
	size  int
	total int64
	byKey map[string]*counted
	heap  order.Heap[*counted] // the rarest first
}

// counted is a key in a counter.
type counted struct {
	Entry
	index int32
}

// Before puts the rarest first.
func (c *counted) Before(other *counted) bool { return c.Count < other.Count }

// Index is for the heap.
func (c *counted) Index() *int32 { return &c.index }

// NewCounter returns a counter with room for size keys.
func NewCounter(size int) *Counter {
	return &Counter{size: max(size, 1), byKey: make(map[string]*counted)}
}

// Add counts a key n times. It keeps no reference to the key.
func (c *Counter) Add(key []byte, n int64) {
	c.total += n
	c.AddAnother(key, n)
}

// AddAnother counts a further key of requests that Add has already counted.
func (c *Counter) AddAnother(key []byte, n int64) {
	if known := c.byKey[string(key)]; known != nil {
		known.Count += n
		c.heap.Fix(known)
		return
	}
	name := string(key)
	if len(c.heap) < c.size {
		c.byKey[name] = &counted{Entry: Entry{Key: name, Count: n}}
		c.heap.Push(c.byKey[name])
		return
	}
	rarest := c.heap[0]
	delete(c.byKey, rarest.Key)
	rarest.Entry = Entry{Key: name, Count: rarest.Count + n, Error: rarest.Count}
	c.byKey[name] = rarest
	c.heap.Fix(rarest)
}

// Sketch returns the current counts. You can keep adding to the counter.
func (c *Counter) Sketch() Sketch {
	s := Sketch{Total: c.total}
	for _, one := range c.heap {
		s.Entries = append(s.Entries, one.Entry)
	}
	if len(c.heap) == c.size {
		s.Floor = c.heap[0].Count
	}
	s.order()
	return s
}
