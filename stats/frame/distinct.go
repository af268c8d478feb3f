package frame

import (
	"math"
	"math/bits"
)

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
