package replay

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/replay/accesslog"
)

// Bounds of what is read at once.
const (
	maxLine  = 64 << 10 // bytes; a longer line is left out
	chunk    = 2 * maxLine
	maxShown = 5 // lines that were not understood, and are shown
)

// batch is a piece of a log, and the entries in it, whose strings are part of it.
type batch struct {
	data    []byte
	entries []accesslog.Entry
	live    int // entries that are still in use

	lines    int64
	badLines int64
	bad      []BadLine // the first of them
	err      error     // why nothing comes after it
}

// BadLine is a line that was not understood.
type BadLine struct {
	Log    string `json:"log"`
	Line   int64  `json:"line"`
	Reason string `json:"reason"`
	Text   string `json:"text"` // the beginning of it, quoted
}

// feed reads a log in a goroutine of its own, and takes it apart.
type feed struct {
	log    *Log
	parser *accesslog.Parser
	full   chan *batch // to be checked
	free   chan *batch // to be filled again

	rest     []byte // the beginning of a line whose end was not read yet
	skipping bool   // the line is too long: wait for its end
	line     int64
	shown    int
}

// run reads until the end, or until the context ends.
func (f *feed) run(ctx context.Context) {
	defer close(f.full)
	for {
		b := f.empty()
		b.err = f.fill(b)
		select {
		case f.full <- b:
		case <-ctx.Done():
			return
		}
		if b.err != nil {
			return
		}
	}
}

// empty returns a batch to fill: one that was in use before, if one has come back.
func (f *feed) empty() *batch {
	select {
	case b := <-f.free:
		b.entries, b.bad = b.entries[:0], b.bad[:0]
		b.live, b.lines, b.badLines, b.err = 0, 0, 0, nil
		return b
	default:
		return &batch{data: make([]byte, chunk)}
	}
}

// giveBack returns a batch of which nothing is in use any more.
func (f *feed) giveBack(b *batch) {
	select {
	case f.free <- b:
	default: // there are enough of them
	}
}

// fill reads the next piece, and takes its lines apart.
func (f *feed) fill(b *batch) error {
	n := copy(b.data, f.rest)
	f.rest = f.rest[:0]
	more, err := readAll(f.log.from, b.data[n:])
	piece := b.data[:n+more]
	for {
		end := bytes.IndexByte(piece, '\n')
		if end < 0 {
			break
		}
		f.one(b, piece[:end])
		piece = piece[end+1:]
	}
	switch {
	case err != nil:
		if len(piece) > 0 || f.skipping {
			f.one(b, piece)
		}
	case f.skipping || len(piece) > maxLine:
		f.skipping = true
	default:
		f.rest = append(f.rest, piece...)
	}
	return err
}

// readAll reads until there is no more room. Unlike io.ReadFull it tells the end of
// a log from a compressed one that is cut off.
func readAll(r io.Reader, room []byte) (n int, err error) {
	for idle := 0; n < len(room) && err == nil; {
		var more int
		more, err = r.Read(room[n:])
		n += more
		if idle++; more > 0 {
			idle = 0
		}
		if idle > 100 && err == nil {
			err = io.ErrNoProgress
		}
	}
	return n, err
}

// one takes one line apart.
func (f *feed) one(b *batch, line []byte) {
	f.line++
	b.lines++
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if f.skipping || len(line) > maxLine {
		f.skipping = false
		f.wrong(b, fmt.Sprintf("longer than %d bytes", maxLine), "")
		return
	}
	if len(line) == 0 {
		return
	}
	if len(b.entries) == cap(b.entries) {
		b.entries = append(b.entries, accesslog.Entry{})
	} else {
		b.entries = b.entries[:len(b.entries)+1] // with the room for extras that it had
	}
	last := len(b.entries) - 1
	if err := f.parser.Parse(line, &b.entries[last]); err != nil {
		b.entries = b.entries[:last]
		f.wrong(b, err.Error(), string(line[:min(len(line), 60)]))
	}
}

// wrong counts a line that was not understood.
func (f *feed) wrong(b *batch, reason, text string) {
	b.badLines++
	if f.shown < maxShown {
		f.shown++
		text = strings.ToValidUTF8(text, "?")
		b.bad = append(b.bad, BadLine{f.log.name, f.line, reason, strconv.QuoteToGraphic(text)})
	}
}
