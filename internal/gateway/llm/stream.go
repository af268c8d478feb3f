package llm

import "bytes"

// maxHeld is more than an event has that says nothing but usage.
const maxHeld = 16 << 10

// passEvents is Pass for a stream of events. An event that may be the one to remove is held
// until it is whole, which its receiver would wait for, too; every other byte goes on at once.
func (w *Watch) passEvents(p []byte) []byte {
	o := output{p: p, buffer: w.out[:0]}
	begin := 0 // of the event that is under way
	for i := 0; i < len(p); {
		n := bytes.IndexByte(p[i:], '\n')
		if n < 0 {
			w.lines.read(p[i:], w)
			break
		}
		w.lines.read(p[i:i+n], w)
		i += n + 1
		if !w.lines.end(&w.scan) {
			continue
		}
		if w.scan.finish(); !w.removable() {
			o.addText(w.held)
			o.takeText(begin, i)
		}
		w.held, w.passing, begin = w.held[:0], false, i
		if w.endEvent(); w.cut {
			o.addText(w.closing())
			w.out = o.buffer
			return o.result()
		}
	}
	if rest := p[begin:]; w.strip && !w.passing && !w.event.choice && len(w.held)+len(rest) <= maxHeld {
		w.held = append(w.held, rest...)
	} else {
		o.addText(w.held)
		o.takeText(begin, len(p))
		w.held, w.passing = w.held[:0], true
	}
	w.out = o.buffer
	return o.result()
}

// removable reports whether the event that has ended is the one with the usage that the client
// did not ask for: it has an empty list of choices.
func (w *Watch) removable() bool {
	return w.strip && !w.passing && w.event.choices && !w.event.choice && w.event.usage
}

// endEvent prepares for the next event, unless this was the last that may be sent.
func (w *Watch) endEvent() {
	if w.lines.some {
		w.origin.end(&w.event)
		w.lookAgain(w.tally.text)
		done := w.tally.whole && w.tally.text == w.alike.textBefore || w.tally.ends > w.origin.last
		if w.Over != nil && !done && w.origin.shape != nothing {
			used, known := w.Used()
			w.cut = known && w.Over(used)
		}
	}
	w.lines.some, w.event, w.tally.calls = false, event{}, 0
	w.scan.reset()
	w.alike.begin(w)
}

// lines reads the fields of a stream of events (text/event-stream). It keeps nothing of
// them, so a line may be endless.
type lines struct {
	length int64 // of the line that is under way
	first  byte
	other  bool // the line has no data
	some   bool // the event has data
}

const dataField = "data:"

var newline = []byte{'\n'} // one for all lines, because the scanner may refer to what it reads

// read reads a part of a line.
func (l *lines) read(p []byte, w *Watch) {
	if len(p) == 0 {
		return
	}
	if l.length == 0 {
		l.first = p[0]
	}
	for ; len(p) > 0 && l.length < int64(len(dataField)) && !l.other; p = p[1:] {
		l.other = p[0] != dataField[l.length]
		l.length++
	}
	l.length += int64(len(p))
	if !l.other && len(p) > 0 {
		l.some = true
		w.alike.read(p, w)
	}
}

// end ends a line, and reports whether an event ends with it.
func (l *lines) end(s *scanner) bool {
	if !l.other && l.length > int64(len(dataField)) {
		s.feed(newline)
	}
	blank := l.length == 0 || l.length == 1 && l.first == '\r'
	l.length, l.other = 0, false
	return blank
}

// output puts together what is sent on. As long as that is what came in, it is not copied.
type output struct {
	p      []byte
	same   int // p[:same] is the output, if nothing was copied
	copied bool
	buffer []byte
}

// takeText adds a part of what came in.
func (o *output) takeText(from, to int) {
	if !o.copied && from == o.same {
		o.same = to
	} else if from < to {
		o.addText(o.p[from:to])
	}
}

// addText adds something else.
func (o *output) addText(b []byte) {
	if len(b) == 0 {
		return
	}
	if !o.copied {
		o.buffer, o.copied = append(o.buffer, o.p[:o.same]...), true
	}
	o.buffer = append(o.buffer, b...)
}

func (o *output) result() []byte {
	if o.copied {
		return o.buffer
	}
	return o.p[:o.same]
}
