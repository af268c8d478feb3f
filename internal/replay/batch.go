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

	rest     []byte // the beginning of a line whose end was not read yet
	skipping bool   // the line is too long: wait for its end
	line     int64
	shown    int
	usual    int // entries of a batch
}

// run reads until the end, or until the context ends.
func (f *feed) run(ctx context.Context) {
	defer close(f.full)
	for {
		b := &batch{data: make([]byte, chunk), entries: make([]accesslog.Entry, 0, f.usual)}
		b.err = f.fill(b)
		f.usual = len(b.entries)
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
	b.entries = append(b.entries, accesslog.Entry{})
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
