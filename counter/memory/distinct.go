package memory

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/estimate"
)

// distinct is what a distinct counter knows of its members: a sketch for the current
// window and one for that before it, since a clock may go back a little. Of earlier
// windows, only the amounts are kept.
type distinct struct {
	// seed makes hashes that clients cannot foresee. Otherwise a few members, well chosen,
	// would be estimated as many.
	seed     [16]byte
	sketches [2]sketch
}

func newDistinct() *distinct {
	d := &distinct{}
	rand.Read(d.seed[:]) // never fails
	return d
}

// addMembers counts members in a window, and returns how many it has then.
func (d *distinct) addMembers(index int64, members []string) counter.Amount {
	s := d.at(index)
	if s.index != index {
		*s = sketch{index: index}
	}
	for _, member := range members {
		s.addHash(d.hash(member))
	}
	return counter.Whole(s.count())
}

func (d *distinct) at(index int64) *sketch { return &d.sketches[index&1] }

func (d *distinct) hash(member string) uint64 {
	sum := sha256.Sum256(append(d.seed[:], member...))
	return binary.LittleEndian.Uint64(sum[:])
}

// weight is in entries of about 400 bytes.
func (d *distinct) weight() int {
	n := 1
	for i := range d.sketches {
		n += (8*len(d.sketches[i].hashes) + len(d.sketches[i].registers)) / 400
	}
	return n
}

// A sketch with many members has so many registers, as in Redis.
const (
	registerPower = 14
	registers     = 1 << registerPower
)

// sketch tells how many members there are in a window.
type sketch struct {
	index     int64
	hashes    []uint64 // of up to counter.ExactMembers, in order
	registers []uint8  // of more; else nil
	ranks     []int32  // how many registers have each rank
}

func (s *sketch) addHash(hash uint64) {
	if s.registers != nil {
		s.estimate(hash)
		return
	}
	i, found := slices.BinarySearch(s.hashes, hash)
	switch {
	case found:
	case len(s.hashes) < counter.ExactMembers:
		s.hashes = slices.Insert(s.hashes, i, hash)
	default:
		s.use(make([]uint8, registers))
		for _, known := range s.hashes {
			s.estimate(known)
		}
		s.estimate(hash)
		s.hashes = nil
	}
}

func (s *sketch) estimate(hash uint64) {
	at, rank := estimate.Register(hash, registerPower)
	if before := s.registers[at]; rank > before {
		s.ranks[before]--
		s.ranks[rank]++
		s.registers[at] = rank
	}
}

// use makes registers those of the sketch. No rank may be out of range.
func (s *sketch) use(registers []uint8) {
	s.registers, s.ranks = registers, make([]int32, estimate.Ranks(registerPower))
	for _, rank := range registers {
		s.ranks[rank]++
	}
}

func (s *sketch) count() int64 {
	if s.registers == nil {
		return int64(len(s.hashes))
	}
	most := float64(counter.MaxAmount / counter.One) // registers of a file may say anything
	return int64(math.Round(min(estimate.Distinct(s.ranks), most)))
}

// bytes are what is written to a snapshot: the hashes or the registers, which are more.
func (s *sketch) bytes() []byte {
	if s.registers != nil {
		return s.registers
	}
	b := make([]byte, 0, 8*len(s.hashes))
	for _, hash := range s.hashes {
		b = binary.LittleEndian.AppendUint64(b, hash)
	}
	return b
}

// restore is the opposite of bytes. It reports whether they can be those of a sketch.
func (s *sketch) restore(b []byte) bool {
	if len(b) == registers {
		if slices.Max(b) >= uint8(estimate.Ranks(registerPower)) {
			return false
		}
		s.use(b)
		return true
	}
	for ; len(b) >= 8; b = b[8:] {
		s.hashes = append(s.hashes, binary.LittleEndian.Uint64(b))
	}
	ascending := slices.IsSortedFunc(s.hashes, func(a, b uint64) int { return cmp.Or(cmp.Compare(a, b), -1) })
	return len(b) == 0 && len(s.hashes) <= counter.ExactMembers && ascending
}
