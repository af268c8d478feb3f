package respapi

import (
	"strconv"

	"github.com/weirhq/weir/internal/manage"
)

// writer appends answers. Those of RESP3 have types of their own; RESP2 has integers for
// booleans, and flat arrays for maps.
type writer struct {
	out    []byte
	resp3  bool
	failed bool // the answer to this command is an error
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
	w.failed = true
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

// Values with their names.

func (w *writer) textAt(name, value string) {
	w.text(name)
	w.text(value)
}

func (w *writer) integerAt(name string, n int64) {
	w.text(name)
	w.integer(n)
}

func (w *writer) boolAt(name string, yes bool) {
	w.text(name)
	w.bool(yes)
}
