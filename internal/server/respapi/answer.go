package respapi

import (
	"strconv"
	"time"

	"github.com/weirhq/weir/internal/rules/manage"
)

// writer appends answers. Those of RESP3 have types of their own; RESP2 has integers for
// booleans, and flat arrays for maps.
type writer struct {
	out   []byte
	resp3 bool

	open []object // the maps that are being written, the innermost last
}

// number writes a line with a number; most have one digit or two.
func (w *writer) number(kind byte, n int64) {
	switch {
	case 0 <= n && n < 10:
		w.out = append(w.out, kind, '0'+byte(n), '\r', '\n')
	case 10 <= n && n < 100:
		w.out = append(w.out, kind, '0'+byte(n/10), '0'+byte(n%10), '\r', '\n')
	default:
		w.out = append(strconv.AppendInt(append(w.out, kind), n, 10), '\r', '\n')
	}
}

// simple writes a text of ours, without line breaks.
func (w *writer) simple(text string) { w.line('+', text) }

func (w *writer) line(kind byte, text string) {
	w.out = append(append(append(w.out, kind), text...), '\r', '\n')
}

// fail writes an error. Its first word is its code, by which programs tell errors apart. It
// may quote what the client sent.
func (w *writer) fail(code, text string) {
	w.out = append(append(append(w.out, '-'), code...), ' ')
	from := len(w.out)
	w.out = append(w.out, manage.Clip(text)...)
	for i, b := range w.out[from:] {
		if b == '\r' || b == '\n' {
			w.out[from+i] = ' '
		}
	}
	w.out = append(w.out, '\r', '\n')
}

func (w *writer) integer(n int64) { w.number(':', n) }

func (w *writer) text(s string) {
	w.number('$', int64(len(s)))
	w.out = append(append(w.out, s...), '\r', '\n')
}

func (w *writer) bytes(b []byte) {
	w.number('$', int64(len(b)))
	w.out = append(append(w.out, b...), '\r', '\n')
}

func (w *writer) bool(yes bool) {
	switch {
	case w.resp3 && yes:
		w.out = append(w.out, "#t\r\n"...)
	case w.resp3:
		w.out = append(w.out, "#f\r\n"...)
	case yes:
		w.out = append(w.out, ":1\r\n"...)
	default:
		w.out = append(w.out, ":0\r\n"...)
	}
}

func (w *writer) null() {
	if w.resp3 {
		w.out = append(w.out, "_\r\n"...)
		return
	}
	w.out = append(w.out, "$-1\r\n"...)
}

func (w *writer) array(n int) { w.number('*', int64(n)) }

// dict begins a map of n names, each with its value behind it.
func (w *writer) dict(n int) {
	if w.resp3 {
		w.number('%', int64(n))
		return
	}
	w.array(2 * n)
}

// What follows implements manage.Fields, of answers whose number of fields is known at their end.

// Object begins a map.
func (w *writer) Object(name string) {
	if name != "" {
		w.field(name)
	}
	w.open = append(w.open, object{at: len(w.out)})
}

// List begins a list.
func (w *writer) List(name string, n int) {
	w.field(name)
	w.array(n)
}

// End ends a list, or a map, and writes the number of its fields where it begins.
func (w *writer) End(list bool) {
	if list {
		return
	}
	last := len(w.open) - 1
	o := w.open[last]
	w.open = w.open[:last]
	head := len(w.out)
	w.dict(o.fields)
	n := len(w.out) - head
	var room [32]byte
	copy(room[:], w.out[head:])
	copy(w.out[o.at+n:], w.out[o.at:head])
	copy(w.out[o.at:], room[:n])
}

// object is a map that is being written.
type object struct{ at, fields int }

func (w *writer) field(name string) {
	if n := len(w.open); n > 0 {
		w.open[n-1].fields++
	}
	w.text(name)
}

func (w *writer) Text(name, value string) {
	w.field(name)
	w.text(value)
}

func (w *writer) Int(name string, n int64) {
	w.field(name)
	w.integer(n)
}

func (w *writer) Bool(name string, yes bool) {
	w.field(name)
	w.bool(yes)
}

func (w *writer) Null(name string) {
	w.field(name)
	w.null()
}

func (w *writer) Time(name string, at time.Time) { w.Text(name, at.Format(time.RFC3339Nano)) }
