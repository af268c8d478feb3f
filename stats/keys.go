package stats

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/weirhq/weir/stats/frame"
)

// keysSize is the room for keys in a stripe, between two looks of the collector: about
// a thousand of them, some thousands a second and stripe. To count one takes a
// background goroutine a fifth of a microsecond, so that it is never busy with more
// than a percent of a core and stripe.
const keysSize = 32 << 10

// keys are who came. It is a buffer of records, each of
//
//	2 bytes rule | 1 byte flags | 2 bytes length | key
//
// When there are too many, only one in mask+1 of them is taken, by chance.
type keys struct {
	buf     []byte
	mask    uint32 // a power of two, less one
	random  uint32 // xorshift
	dropped int64  // found no room
}

const (
	keyHead    = 5
	deniedFlag = 0x80 // the other bits are the power of two by which it counts
	maxMask    = 1<<16 - 1
)

func newKeys() keys {
	return keys{buf: make([]byte, 0, keysSize), random: rand.Uint32() | 1}
}

func (k *keys) add(rule int, denied bool, key string) {
	if k.mask != 0 {
		x := k.random
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		k.random = x
		if x&k.mask != 0 {
			return
		}
	}
	at := len(k.buf)
	if at+keyHead+len(key) > cap(k.buf) {
		k.dropped += int64(k.mask) + 1
		return
	}
	flags := byte(bits.Len32(k.mask))
	if denied {
		flags |= deniedFlag
	}
	k.buf = k.buf[:at+keyHead+len(key)]
	record := k.buf[at:]
	binary.LittleEndian.PutUint16(record, uint16(rule))
	record[2] = flags
	binary.LittleEndian.PutUint16(record[3:], uint16(len(key)))
	copy(record[keyHead:], key)
}

// exchange empties the buffer into another of the same size, and takes more or fewer
// keys from now on. It keeps well below the room, so that none is dropped when traffic
// grows.
func (k *keys) exchange(other []byte) (full []byte, dropped int64) {
	full, dropped = k.buf, k.dropped
	k.buf, k.dropped = other[:0], 0
	switch {
	case dropped > 0 || len(full) > cap(full)/2:
		k.mask = min(k.mask<<1|1, maxMask)
	case len(full) < cap(full)/8:
		k.mask >>= 1
	}
	return full, dropped
}

// ranks are the keys of the last ten seconds, counted.
type ranks struct {
	all    [2]*frame.Counter // allowed and denied
	byRule map[string]*[2]*frame.Counter
}

// Places for keys: as many as an archive keeps, and as many again, so that those which
// are kept have little error.
const (
	placesAll  = 4 * frame.MaxRankedAll
	placesRule = 4 * frame.MaxRanked
)

func newRanks() *ranks {
	return &ranks{
		all:    [2]*frame.Counter{frame.NewCounter(placesAll), frame.NewCounter(placesAll)},
		byRule: map[string]*[2]*frame.Counter{},
	}
}

// count reads the records of a buffer.
func (r *ranks) count(x *index, buf []byte) {
	for len(buf) >= keyHead {
		p := x.rules[binary.LittleEndian.Uint16(buf)]
		n := int64(1) << (buf[2] &^ deniedFlag)
		half := int(buf[2] >> 7)
		end := keyHead + int(binary.LittleEndian.Uint16(buf[3:]))
		key := buf[keyHead:end]
		buf = buf[end:]
		r.all[half].Add(key, n)
		of := r.byRule[p.id]
		if of == nil {
			of = &[2]*frame.Counter{frame.NewCounter(placesRule), frame.NewCounter(placesRule)}
			r.byRule[p.id] = of
		}
		of[half].Add(key, n)
	}
}

// put writes what was counted into a frame.
func (r *ranks) put(f *frame.Frame) {
	if len(r.byRule) == 0 {
		return
	}
	all := f.Ranking("")
	all.Allowed, all.Denied = r.all[0].Sketch(), r.all[1].Sketch()
	for id, of := range r.byRule {
		one := f.Ranking(id)
		one.Allowed, one.Denied = of[0].Sketch(), of[1].Sketch()
	}
	f.Trim()
}
