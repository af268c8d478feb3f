package llm

import "bytes"

// alike is how the events of a stream begin. Up to the text that the model wrote, most of them
// are the same as the one before, and what that was need not be read again.
type alike struct {
	text  []byte // up to the first byte of what the model wrote; none if nothing is known
	event event  // what was seen there
	open  [maxAlikeOpen]frame
	depth int64

	piece []byte // that is being read, if an event begins with it

	textBefore, endsBefore int64 // what was counted before the event
}

const (
	maxAlike     = 1 << 10
	maxAlikeOpen = 8
)

// reset forgets everything.
func (a *alike) reset() {
	a.text, a.piece, a.textBefore, a.endsBefore = a.text[:0], nil, 0, 0
}

// begin is called before each event.
func (a *alike) begin(w *Watch) { a.textBefore, a.endsBefore = w.tally.text, w.tally.ends }

// read reads a piece of an event.
func (a *alike) read(p []byte, w *Watch) {
	s := &w.scan
	if a.piece = nil; s.offset == 0 {
		if n := len(a.text); n > 0 && bytes.HasPrefix(p, a.text) {
			w.event = a.event
			s.depth = a.depth
			copy(s.open[:], a.open[:a.depth])
			s.state, s.isKey = inString, false
			s.v = value{id: someText, kind: '"', text: s.kept[:0], begin: int64(n) - 1}
			s.offset, p = int64(n), p[n:]
		} else {
			a.piece = p
		}
	}
	s.feed(p)
	a.piece = nil
}

// learn remembers how an event began, when its first text has been read. Nothing that adds up
// may have been counted before.
func (a *alike) learn(v *value, w *Watch) {
	if v.kind != '"' || a.piece == nil || v.begin >= maxAlike || w.scan.depth > maxAlikeOpen ||
		w.tally.text != a.textBefore || w.tally.ends != a.endsBefore {
		return
	}
	a.text = append(a.text[:0], a.piece[:v.begin+1]...)
	a.event, a.depth = w.event, w.scan.depth
	copy(a.open[:], w.scan.open[:w.scan.depth])
	a.piece = nil
}
