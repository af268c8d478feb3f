package memory

import (
	"encoding/binary"

	"github.com/weirhq/weir"
)

// endedHolds is a log of the holds that have ended, in the order of their ends. It has no
// pointers, so that it can be long. A hold takes about 32 bytes, and its tags.
type endedHolds struct {
	chunks [][]byte
	base   uint16 // the number of the first chunk
	begin  int    // of the oldest record, in the first chunk
	count  int
	bytes  int
	spare  []byte // a chunk to be used again
}

// endedHold is a record of the log:
//
//	length of the record, 2 bytes
//	id
//	when it is forgotten, 8 bytes
//	state
//	number of parts
//	for each part: length of the tag, tag, cost, units used, excess
type endedHold []byte

const (
	chunkBytes = 4096
	headBytes  = 28
)

func (e endedHold) id() weir.HoldID       { return weir.HoldID(e[2:18]) }
func (e endedHold) until() weir.Micros    { return weir.Micros(binary.LittleEndian.Uint64(e[18:])) }
func (e endedHold) state() weir.HoldState { return weir.HoldState(e[26]) }

// A record may be forgotten before its turn. It then has an unknown state, and is not in the
// directory.
func (e endedHold) forget()           { e[26] = byte(weir.HoldUnknown) }
func (e endedHold) isForgotten() bool { return e.state() == weir.HoldUnknown }

// answer is what a caller is told.
func (e endedHold) answer() weir.Settled {
	s := weir.Settled{State: e.state(), Repeated: e.state() == weir.HoldSettled}
	if n := e[27]; n > 0 {
		s.Parts = make([]weir.SettledPart, n)
	}
	at := headBytes
	number := func() int64 {
		x, n := binary.Uvarint(e[at:])
		at += n
		return int64(x)
	}
	for i := range s.Parts {
		end := at + 1 + int(e[at])
		s.Parts[i].Tag = string(e[at+1 : end])
		at = end
		s.Parts[i].Cost, s.Parts[i].Used, s.Parts[i].Excess = number(), number(), number()
	}
	return s
}

// add writes the outcome of a hold, and returns where it is.
func (l *endedHolds) add(id *weir.HoldID, parts []weir.SettledPart, state weir.HoldState, until weir.Micros) holdRef {
	most := headBytes
	for i := range parts {
		most += 1 + len(parts[i].Tag) + 3*binary.MaxVarintLen64
	}
	chunk, ref := l.room(most)
	start := len(*chunk)
	b := (*chunk)[:start+headBytes]
	e := endedHold(b[start:])
	*(*weir.HoldID)(e[2:18]) = *id
	binary.LittleEndian.PutUint64(e[18:], uint64(until))
	e[26], e[27] = byte(state), byte(len(parts))
	for i := range parts {
		p := &parts[i]
		b = append(b, byte(len(p.Tag)))
		b = append(b, p.Tag...)
		b = binary.AppendUvarint(b, uint64(p.Cost))
		b = binary.AppendUvarint(b, uint64(p.Used))
		b = binary.AppendUvarint(b, uint64(p.Excess))
	}
	binary.LittleEndian.PutUint16(e, uint16(len(b)-start))
	*chunk = b
	l.count++
	l.bytes += len(b) - start
	return ref
}

// room returns the chunk for a record, and where it will be.
func (l *endedHolds) room(most int) (*[]byte, holdRef) {
	last := len(l.chunks) - 1
	if last < 0 || len(l.chunks[last])+most > cap(l.chunks[last]) {
		chunk := l.spare
		if l.spare = nil; cap(chunk) < most {
			chunk = make([]byte, 0, max(chunkBytes, most))
		}
		l.chunks = append(l.chunks, chunk)
		last++
	}
	number := (l.base + uint16(last)) & maxChunks
	return &l.chunks[last], holdRef(number)<<16 | holdRef(len(l.chunks[last]))
}

// maxChunks is how many there can be; a reference has 15 bits for the number of a chunk.
const maxChunks = 1<<15 - 1

// record returns what is at a place.
func (l *endedHolds) record(ref holdRef) endedHold {
	chunk := l.chunks[(uint16(ref>>16)-l.base)&maxChunks]
	return cut(chunk[ref&0xffff:])
}

// cut returns the record at the beginning of bytes.
func cut(b []byte) endedHold { return endedHold(b[:binary.LittleEndian.Uint16(b)]) }

// oldest returns the oldest record; nil if there is none.
func (l *endedHolds) oldest() endedHold {
	if l.count == 0 {
		return nil
	}
	return cut(l.chunks[0][l.begin:])
}

// drop removes the oldest record.
func (l *endedHolds) drop() {
	n := len(l.oldest())
	l.count--
	l.bytes -= n
	if l.begin += n; l.begin < len(l.chunks[0]) {
		return
	}
	if cap(l.chunks[0]) == chunkBytes {
		l.spare = l.chunks[0][:0]
	}
	l.chunks[0] = nil
	l.chunks, l.base, l.begin = l.chunks[1:], (l.base+1)&maxChunks, 0
}

// again writes the oldest record again, as the newest, and returns where it is.
func (l *endedHolds) again() holdRef {
	e := l.oldest()
	chunk, ref := l.room(len(e))
	*chunk = append(*chunk, e...)
	l.count++
	l.bytes += len(e)
	l.drop()
	return ref
}
