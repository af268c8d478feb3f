package llm

import (
	"bytes"
	"net/http"
	"strings"
	"sync"

	"github.com/weirhq/weir/rule"
)

// Watch reads a response on its way to the client. It is for one goroutine.
type Watch struct {
	// Over reports whether so much is more than the request may use; the stream then ends
	// after the event that is under way, as if the model had reached the client's own limit.
	// Without it, and where the response is not a stream of events, nothing is cut.
	Over func(Usage) bool

	request Request
	strip   bool // the event with the usage was not asked for by the client
	status  int
	form    form
	scan    scanner
	tally   tally
	lines   lines
	event   event
	alike   alike
	origin  origin
	framing framing
	cut     bool
	held    []byte // of an event that may have to be removed
	passing bool   // the event that is under way is not held
	out     []byte
}

type form uint8

const (
	opaque form = iota // compressed, or not of a form that is known
	document
	events
	frames // of AWS
)

var watches = sync.Pool{New: func() any {
	w := new(Watch)
	w.scan.root, w.scan.visit = responseNodes, w.see
	return w
}}

// NewWatch returns a watch over the answer to a request.
func NewWatch(r Request) *Watch {
	w := watches.Get().(*Watch)
	w.request = r
	return w
}

// Free lets another response have the memory of the watch, which is not used any more.
func (w *Watch) Free() {
	w.clear()
	watches.Put(w)
}

// clear forgets the response. Most of the memory is what the scanner and earlier events have left,
// which is written before it is read again.
func (w *Watch) clear() {
	w.Over, w.request, w.origin = nil, Request{}, origin{}
	w.strip, w.cut, w.passing, w.status, w.form = false, false, false, 0, opaque
	w.tally, w.lines, w.framing, w.event = tally{}, lines{}, framing{}, event{}
	w.scan.reset()
	w.alike.reset()
	if w.held, w.out = w.held[:0], w.out[:0]; cap(w.held)+cap(w.out) > maxFreed {
		w.held, w.out = nil, nil
	}
}

// maxFreed is how many bytes of buffers are used again.
const maxFreed = 64 << 10

// Strip says that the usage was asked for on the client's behalf, so that the event that has it
// is removed.
func (w *Watch) Strip() { w.strip = true }

// Begin says how the response begins. One that is compressed cannot be read, so callers ask
// upstreams for none; if it is all the same, nothing is known.
func (w *Watch) Begin(status int, h http.Header) {
	w.status = status
	encoding := h.Get("Content-Encoding")
	kind := strings.ToLower(h.Get("Content-Type"))
	switch {
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
	case strings.Contains(kind, "amazon.eventstream"):
		w.form = frames
	case strings.Contains(kind, "event-stream"):
		w.form = events
	case strings.Contains(kind, "json"):
		w.form = document
	}
}

// Shortens reports whether what is sent on may be shorter than what comes in.
func (w *Watch) Shortens() bool {
	return w.form == events && w.strip || (w.form == events || w.form == frames) && w.Over != nil
}

// Pass reads what comes next and returns what is to be sent on at once. The result is valid
// until the next call; it is usually p itself.
func (w *Watch) Pass(p []byte) []byte {
	switch {
	case w.cut:
		return nil
	case w.form == events:
		return w.passEvents(p)
	case w.form == frames:
		return w.passFrames(p)
	case w.form == document:
		w.scan.feed(p)
	}
	return p
}

// End returns what is still to be sent when the response has ended, whether or not it is whole.
func (w *Watch) End() []byte {
	if w.form == document {
		w.scan.finish()
	}
	rest := w.held
	w.held = w.held[:0]
	return rest
}

// Cut reports whether the response was ended before its time. Whatever else the upstream sends
// is not passed on.
func (w *Watch) Cut() bool { return w.cut }

// Ended reports whether the model has come to an end. The caller says whether the upstream has, without an error
// and before the client left: Gemini's older models give a reason to end with every part.
func (w *Watch) Ended(upstream bool) bool {
	t := &w.tally
	switch {
	case w.form == document:
		return w.scan.offset > 0 && w.scan.depth == 0 && w.scan.state == between
	case t.list == someCandidates:
		return upstream && t.ends > 0
	case t.list == someChoices:
		return t.ends >= max(1, w.request.Bounded+w.request.Answers)
	}
	return t.ends > 0 || t.whole
}

// Used is what the request used, as far as it has been seen, and whether anything was. A
// request that failed used nothing; of one about which nothing is known, the estimate stands.
func (w *Watch) Used() (u Usage, known bool) {
	text := w.tally.text
	if id, size := w.scan.partial(); id == someText {
		text += size
	}
	w.lookAgain(text)
	u, known = w.tally.used(w.request.Input, text)
	if !w.tally.tiered && w.request.Tier == rule.PriorityTier {
		u.Tier = rule.PriorityTier // it costs more, and the response does not say otherwise
	}
	if !known && w.status >= http.StatusBadRequest {
		return Usage{}, true
	}
	return u, known
}

// lookAgain takes the usage for that of a part if text has come in an event after it. Some servers
// report usage on the way.
func (w *Watch) lookAgain(text int64) {
	if (w.form == events || w.form == frames) && !w.event.usage && text > w.alike.textBefore {
		w.tally.whole = false
	}
}

// event is what has been seen of the event that is under way.
type event struct {
	kind    kind
	block   int64
	usage   bool // it has one
	choices bool // it has a list of choices
	choice  bool // and the list is not empty
}

// kind is the type that an event says it has.
type kind uint8

const (
	typeOther kind = iota
	typeResponse
	typeMessage
	typeBlock
	typeBlockStop
)

func kindOf(name []byte) kind {
	switch string(name) {
	case "message_start":
		return typeMessage
	case "content_block_start", "content_block_delta":
		return typeBlock
	case "content_block_stop":
		return typeBlockStop
	}
	if bytes.HasPrefix(name, []byte("response.")) {
		return typeResponse
	}
	return typeOther
}

// see is told every value that is of interest.
func (w *Watch) see(v *value) {
	if v.id == someText {
		w.alike.learn(v, w)
	}
	if v.id == someChoices || v.id == someCandidates {
		w.tally.list = v.id
	}
	e := &w.event
	switch {
	case v.id == aUsage:
		e.usage = e.usage || v.kind == '{'
	case v.id == someChoices: // the list, and then what is in it
		e.choice = e.choice || e.choices && v.kind != 'k'
		e.choices = e.choices || v.kind == '['
	case w.tally.count(v), w.Over == nil: // the rest is for who has to end the stream
	case v.id == theType:
		e.kind = kindOf(v.text)
	case v.id == theBlock:
		e.block = v.number()
	default:
		w.origin.see(v)
	}
}

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
		w.tally.text != a.textBefore || w.tally.ends != a.endsBefore || w.tally.calls > 0 {
		return
	}
	a.text = append(a.text[:0], a.piece[:v.begin+1]...)
	a.event, a.depth = w.event, w.scan.depth
	copy(a.open[:], w.scan.open[:w.scan.depth])
	a.piece = nil
}
