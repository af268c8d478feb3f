package llm

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Frames of application/vnd.amazon.eventstream: the length of all, the length of the headers, a checksum of the two, headers,
// a document in JSON, and a checksum of all. A frame passes as it comes, and nothing of it is kept but the first twelve bytes. Checksums are
// not checked: who receives the frame does so, and what a damaged one says can only be a wrong count of one request.

const (
	preludeSize = 12
	sumSize     = 4
	maxHeaders  = 128 << 10 // of one frame, by the format
	maxPayload  = 16 << 20
)

// framing is of the frame that is under way.
type framing struct {
	prelude               [preludeSize]byte
	have                  int   // bytes of the prelude
	headers, payload, sum int64 // bytes that are still to come
}

// begin reads a prelude; it is false if it cannot be one.
func (f *framing) begin() bool {
	all, headers := int64(binary.BigEndian.Uint32(f.prelude[:])), int64(binary.BigEndian.Uint32(f.prelude[4:]))
	f.headers, f.payload, f.sum = headers, all-headers-preludeSize-sumSize, sumSize
	return headers <= maxHeaders && 0 <= f.payload && f.payload <= maxPayload
}

// skip takes bytes of a part from p.
func skip(part *int64, p []byte) []byte {
	n := min(*part, int64(len(p)))
	*part -= n
	return p[:n]
}

// passFrames is Pass for frames. What is no frame is not read any further, and passes.
func (w *Watch) passFrames(p []byte) []byte {
	f := &w.framing
	for i := 0; i < len(p); {
		switch rest := p[i:]; {
		case f.have < preludeSize:
			n := copy(f.prelude[f.have:], rest)
			i, f.have = i+n, f.have+n
			if f.have == preludeSize && !f.begin() {
				w.form = opaque
				return p
			}
		case f.headers > 0:
			i += len(skip(&f.headers, rest))
		case f.payload > 0:
			part := skip(&f.payload, rest)
			w.scan.feed(part)
			i += len(part)
		default:
			i += len(skip(&f.sum, rest))
			if f.sum > 0 {
				continue
			}
			if f.have = 0; w.endFrame() {
				w.out = append(append(w.out[:0], p[:i]...), w.closingFrames()...)
				return w.out
			}
		}
	}
	return p
}

// endFrame prepares for the next frame. It reports whether this was the last that may be sent.
func (w *Watch) endFrame() bool {
	w.scan.finish()
	w.lookAgain(w.tally.text)
	if w.tally.text > w.alike.textBefore { // the model writes a block
		w.origin.block = w.event.block
		if w.Over != nil && w.tally.ends == 0 {
			used, known := w.Used()
			w.cut = known && w.Over(used)
		}
	}
	w.event = event{}
	w.scan.reset()
	w.alike.begin(w)
	return w.cut
}

// closingFrames ends the stream as the API does when the model has reached the client's own limit.
func (w *Watch) closingFrames() (all []byte) {
	u, _ := w.Used()
	all = appendFrame(all, "contentBlockStop", fmt.Sprintf(`{"contentBlockIndex":%d}`, w.origin.block))
	all = appendFrame(all, "messageStop", `{"stopReason":"max_tokens"}`)
	return appendFrame(all, "metadata", fmt.Sprintf(`{"usage":{"inputTokens":%d,"outputTokens":%d,"totalTokens":%d},"metrics":{"latencyMs":0}}`, u.Input, u.Output, u.Input+u.Output))
}

// appendFrame appends a frame with an event of a kind.
func appendFrame(to []byte, kind, payload string) []byte {
	var headers []byte
	for _, h := range [][2]string{{":event-type", kind}, {":content-type", "application/json"}, {":message-type", "event"}} {
		const text = 7
		headers = append(append(headers, byte(len(h[0]))), h[0]...)
		headers = append(binary.BigEndian.AppendUint16(append(headers, text), uint16(len(h[1]))), h[1]...)
	}
	begin := len(to)
	to = binary.BigEndian.AppendUint32(to, uint32(preludeSize+len(headers)+len(payload)+sumSize))
	to = binary.BigEndian.AppendUint32(to, uint32(len(headers)))
	to = binary.BigEndian.AppendUint32(to, crc32.ChecksumIEEE(to[begin:]))
	to = append(append(to, headers...), payload...)
	return binary.BigEndian.AppendUint32(to, crc32.ChecksumIEEE(to[begin:]))
}
