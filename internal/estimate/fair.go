package estimate

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

const (
	fairValues = 512
	fairShare  = 4       // the part of the values that one client has at most, as 1/fairShare
	fairFine   = 4       // slots are 1/16 wide
	fairMost   = 1 << 41 // values beyond are taken for it
	fairAge    = 24 * time.Hour
	lately     = 64
)

// Fair keeps the last values of many clients. None of them has more than a quarter of those that a
// quantile is found by, so that one client cannot lower it for others. If there is no room, the owner with the
// most values loses one, so that owners of many clients have no more places than others; until then one can have most of
// what counts. The zero value is empty.
type Fair struct {
	values  []fairValue    // from the oldest on
	owners  map[uint32]int // how many values each has
	clients map[uint32]int // likewise
}

// Source is where a value comes from: a client, and who owns it together with other clients.
type Source struct{ Owner, Client uint32 }

type fairValue struct {
	at int64 // in milliseconds
	Source
	slot uint16
}

func (v fairValue) compare(other fairValue) int {
	return cmp.Or(cmp.Compare(v.at, other.at), cmp.Compare(v.Client, other.Client), cmp.Compare(v.Owner, other.Owner), cmp.Compare(v.slot, other.slot))
}

// Add adds a value.
func (f *Fair) Add(now time.Time, from Source, value uint64) {
	f.put(fairValue{now.UnixMilli(), from, uint16(Slot(min(value, fairMost), fairFine))})
	f.trim()
}

func (f *Fair) put(v fairValue) {
	if f.owners == nil {
		f.owners, f.clients = map[uint32]int{}, map[uint32]int{}
	}
	i, _ := slices.BinarySearchFunc(f.values, v, fairValue.compare)
	f.values = slices.Insert(f.values, i, v)
	f.owners[v.Owner]++
	f.clients[v.Client]++
}

// trim removes what there is no room for: the oldest values if they are old, else of the owner with the most values, and
// there of the client with the most. Of several, it is the one with the oldest value.
func (f *Fair) trim() {
	for len(f.values) > fairValues {
		i := 0
		if f.values[len(f.values)-1].at-f.values[0].at <= fairAge.Milliseconds() {
			i = f.victim()
		}
		v := f.values[i]
		f.values = slices.Delete(f.values, i, i+1)
		lower(f.owners, v.Owner)
		lower(f.clients, v.Client)
	}
}

func lower(counts map[uint32]int, who uint32) {
	if counts[who]--; counts[who] == 0 {
		delete(counts, who)
	}
}

func (f *Fair) victim() (at int) {
	most := 0
	for _, n := range f.owners {
		most = max(most, n)
	}
	owner := f.values[slices.IndexFunc(f.values, func(v fairValue) bool { return f.owners[v.Owner] == most })].Owner
	most = 0
	for i, v := range f.values {
		if v.Owner == owner && f.clients[v.Client] > most {
			at, most = i, f.clients[v.Client]
		}
	}
	return at
}

// Merge adds the values of another one that are not there already, but for those that are later than now. It reports
// whether there were any.
func (f *Fair) Merge(now time.Time, other *Fair) (some bool) {
	have := make(map[fairValue]int, len(f.values))
	for _, v := range f.values {
		have[v]++
	}
	for _, v := range other.values {
		if have[v]--; have[v] < 0 && v.at <= now.UnixMilli() {
			f.put(v)
			some = true
		}
	}
	f.trim()
	return some
}

// Last is the time of the last value.
func (f *Fair) Last() time.Time {
	if len(f.values) == 0 {
		return time.Time{}
	}
	return time.UnixMilli(f.values[len(f.values)-1].at)
}

// Equal reports whether both have the same values.
func (f *Fair) Equal(other *Fair) bool { return slices.Equal(f.values, other.values) }

// Fair is written as a version and its values: how long after the one before, from whom, and the slot. It has less than 8 KiB.
const fairVersion = 1

// AppendBinary implements encoding.BinaryAppender.
func (f *Fair) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, fairVersion)
	before := int64(0)
	for _, v := range f.values {
		b = binary.AppendUvarint(b, uint64(v.at-before))
		b = binary.LittleEndian.AppendUint32(b, v.Owner)
		b = binary.LittleEndian.AppendUint32(b, v.Client)
		b = binary.LittleEndian.AppendUint16(b, v.slot)
		before = v.at
	}
	return b, nil
}

var errFair = errors.New("estimate: these are no values, or those of another version")

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (f *Fair) UnmarshalBinary(b []byte) error {
	const fixed = 4 + 4 + 2
	if *f = (Fair{}); len(b) == 0 || b[0] != fairVersion {
		return errFair
	}
	var read Fair
	for at, b := int64(0), b[1:]; len(b) > 0; b = b[fixed:] {
		after, n := binary.Uvarint(b)
		if n <= 0 || len(b) < n+fixed || after > 1<<50 || len(read.values) == fairValues {
			return errFair
		}
		at, b = at+int64(after), b[n:]
		v := fairValue{at, Source{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])}, binary.LittleEndian.Uint16(b[8:])}
		if v.slot > uint16(Slot(fairMost, fairFine)) {
			return errFair
		}
		read.put(v)
	}
	*f = read
	return nil
}

// Quantile returns a value that at least so many percent of the values do not exceed, of the fair ones
// and of the last ones of any client, so that it rises quickly. It is false as long as there are too few
// values, or too few clients, to tell.
func (f *Fair) Quantile(percent int) (uint64, bool) {
	share := f.share()
	taken := make(map[uint32]int, 16)
	var slots []uint16
	for _, v := range slices.Backward(f.values) {
		if taken[v.Client]++; taken[v.Client] <= share {
			slots = append(slots, v.slot)
		}
	}
	if len(slots) < 5*100/(100-percent) || len(slots) < lately {
		return 0, false
	}
	var last [lately]uint16
	for i, v := range f.values[len(f.values)-lately:] {
		last[i] = v.slot
	}
	return max(top(slots, percent), top(last[:], percent)), true
}

// Len is how many values count for a quantile, and whether they are enough for one.
func (f *Fair) Len() (n int, enough bool) {
	share := f.share()
	for _, have := range f.clients {
		n += min(have, share)
	}
	return n, n >= lately
}

// share is how many values of each client count, so that none has more than its share of those that count.
func (f *Fair) share() int {
	least, most := 0, fairValues/fairShare
	for least < most {
		share, all := (least+most+1)/2, 0
		for _, n := range f.clients {
			all += min(n, share)
		}
		if all >= fairShare*share {
			least = share
		} else {
			most = share - 1
		}
	}
	return least
}

// top is the largest number in the slot of a quantile. It sorts the slots.
func top(slots []uint16, percent int) uint64 {
	slices.Sort(slots)
	rank := (len(slots)*percent + 99) / 100
	bottom, width := Bottom(uint(slots[rank-1]), fairFine)
	return bottom + width - 1
}
