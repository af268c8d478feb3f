package frame

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Entry is a key that came often: at least Count-Error times, at most Count times.
type Entry struct {
	Key   string
	Count int64
	Error int64
}

// Sketch is the keys that came most often in a stretch of time. Sketches merge, and
// what that costs in precision is in the errors of the entries.
type Sketch struct {
	Entries []Entry // by Count, the largest first
	Floor   int64   // a key that is not among them came at most so often
	Total   int64   // requests that had a key; each counts once, also if it had several
}

// Merge adds another sketch. A key that is in only one of them may have come to the
// other as often as its floor.
func (s *Sketch) Merge(other *Sketch) {
	s.Total += other.Total
	if len(other.Entries) == 0 && other.Floor == 0 {
		return
	}
	at := make(map[string]int, len(s.Entries))
	for i := range s.Entries {
		at[s.Entries[i].Key] = i
	}
	met := make([]bool, len(s.Entries))
	for _, e := range other.Entries {
		if i, ok := at[e.Key]; ok {
			met[i] = true
			s.Entries[i].Count += e.Count
			s.Entries[i].Error += e.Error
			continue
		}
		s.Entries = append(s.Entries, Entry{e.Key, e.Count + s.Floor, e.Error + s.Floor})
	}
	for i, met := range met {
		if !met {
			s.Entries[i].Count += other.Floor
			s.Entries[i].Error += other.Floor
		}
	}
	s.Floor += other.Floor
	s.order()
}

// Trim forgets all but the n largest.
func (s *Sketch) Trim(n int) {
	if len(s.Entries) <= n {
		return
	}
	s.Floor = max(s.Floor, s.Entries[n].Count)
	s.Entries = slices.Clip(slices.Clone(s.Entries[:n]))
}

// Both returns a sketch of the two halves together.
func (r *Ranking) Both() Sketch {
	var s Sketch
	s.Merge(&r.Allowed)
	s.Merge(&r.Denied)
	return s
}

func (s *Sketch) order() {
	slices.SortFunc(s.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
	})
}

// Distinct counts how many different things there were, in 128 bytes: HyperLogLog. The
// count is off by 9 % as a rule, and by less below a hundred. The zero value is empty.
type Distinct struct {
	registers [registers]uint8
}

const (
	registerBits = 7
	registers    = 1 << registerBits
)

// Add counts a thing by its hash, whose bits are as good as random.
func (d *Distinct) Add(hash uint64) {
	at := hash >> (64 - registerBits)
	rank := uint8(min(bits.LeadingZeros64(hash<<registerBits), 64-registerBits) + 1)
	d.registers[at] = max(d.registers[at], rank)
}

// Merge adds what another has counted. What both have seen counts once.
func (d *Distinct) Merge(other *Distinct) {
	for i, rank := range other.registers {
		d.registers[i] = max(d.registers[i], rank)
	}
}

// Count estimates how many there were.
func (d *Distinct) Count() int64 {
	sum, empty := 0.0, 0
	for _, rank := range d.registers {
		sum += 1 / float64(uint64(1)<<rank)
		if rank == 0 {
			empty++
		}
	}
	const m = float64(registers)
	estimate := 0.7213 / (1 + 1.079/m) * m * m / sum
	if estimate <= 2.5*m && empty > 0 {
		estimate = m * math.Log(m/float64(empty)) // of few things, by the registers that none has found
	}
	return int64(math.Round(estimate))
}

// Clients are who was judged, and who of them was denied at least once.
type Clients struct{ All, Denied Distinct }

// Add counts a client by its hash.
func (c *Clients) Add(hash uint64, denied bool) {
	c.All.Add(hash)
	if denied {
		c.Denied.Add(hash)
	}
}

// Merge adds others.
func (c *Clients) Merge(other *Clients) {
	c.All.Merge(&other.All)
	c.Denied.Merge(&other.Denied)
}
