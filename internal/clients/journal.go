package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/weirhq/weir/internal/disk"
)

// Journal is a store in a file that belongs to this process: a line for each change, which is on the disk before the change is
// in force. When it has twice as many lines as there are clients, it is written again.
type Journal struct {
	path   string
	logger *slog.Logger
	file   *os.File // nil before the first change
	size   int64    // of what is whole
	number uint64   // of the last change
	lines  int
	live   int // at the last rewrite
}

// NewJournal returns a store in a file, which is made by the first change; without a path, there is none, and the process keeps
// the clients in its memory alone. The logger is told what of it could not be used.
func NewJournal(path string, logger *slog.Logger) *Journal {
	return &Journal{path: path, logger: logger}
}

// journalLine is a line of the file. Without an entry, the client was deleted. Changes that are written together count only if all
// are there.
type journalLine struct {
	Name  string          `json:"name"`
	Entry json.RawMessage `json:"entry,omitempty"`
	Place int             `json:"n,omitempty"`  // among those that are written together, from 1
	Of    int             `json:"of,omitempty"` // how many these are, if there are several
}

// maxLine bounds a line: an entry, and its name with escapes.
const maxLine = 128 << 10

var errOrder = errors.New("it does not belong behind the line before")

// Load implements Store. What is not whole at the end is left out: a process that ended while it wrote told nobody that it is there. A
// loss of power can leave zeros in the place of any part that was written last.
func (j *Journal) Load(_ context.Context, each func(Record)) (Position, int, error) {
	j.size, j.lines, j.number = 0, 0, 0
	file, err := disk.Open(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Position{}, 0, nil
	} else if err != nil {
		return Position{}, 0, err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, maxLine)
	var together []Record // the last changes, until all are there that were written together
	var last journalLine
	size, zeros := int64(0), false // of these
	for number := 1; ; number++ {
		line, length, hollow, err := readLine(in)
		size += length
		switch {
		case err == io.EOF:
			if size > 0 {
				j.logger.Warn("the end of the journal of clients was not written completely and is left out; these changes were never acknowledged",
					"file", filepath.Base(j.path), "bytes", size, "changes", max(last.Of, 1))
			}
			j.number = uint64(j.lines)
			return Position{Number: j.number}, 0, nil
		case hollow && err == nil:
			zeros = true
			continue
		}
		l := journalLine{Place: 1, Of: 1}
		if err == nil {
			err = json.Unmarshal(line, &l)
		}
		if err == nil && (l.Place <= last.Place || l.Of < l.Place || last.Of > 0 && l.Of != last.Of || !zeros && l.Place != last.Place+1 || zeros && l.Place == 1) {
			err = errOrder
		}
		if err != nil {
			return Position{}, 0, fmt.Errorf("line %d of %s is damaged: %w; restore the file, or remove the line", number, filepath.Base(j.path), err)
		}
		last = l
		if zeros {
			continue
		}
		if together = append(together, Record{l.Name, bytes.Clone(l.Entry)}); l.Place < l.Of {
			continue
		}
		for _, r := range together {
			each(r)
		}
		j.lines += len(together)
		j.size += size
		together, size, last = together[:0], 0, journalLine{}
	}
}

// readLine reads a line and its length. One with a zero is hollow, however long it is. The end is io.EOF; there may be a part of a line.
func readLine(in *bufio.Reader) (line []byte, length int64, hollow bool, err error) {
	for {
		line, err = in.ReadSlice('\n')
		length += int64(len(line))
		hollow = hollow || bytes.IndexByte(line, 0) >= 0
		switch {
		case length > maxLine && !hollow:
			return nil, length, false, bufio.ErrTooLong
		case err != bufio.ErrBufferFull:
			return line, length, hollow, err
		}
	}
}

// Changes implements Store. Nobody else writes; but the process does not know what it has written with an error.
func (j *Journal) Changes(_ context.Context, since Position) ([]Record, Position, error) {
	if since.Number != j.number {
		return nil, Position{}, ErrMoved
	}
	return nil, since, nil
}

// Write implements Store.
func (j *Journal) Write(_ context.Context, base Position, records []Record, all func(func(Record) bool)) (Position, error) {
	if base.Number != j.number {
		return Position{}, ErrMoved
	}
	next := Position{Number: base.Number + uint64(len(records))}
	if j.path == "" {
		if j.number == 0 {
			j.logger.Warn("clients are kept in the memory of this process alone, so a restart forgets them; set --data, or --store redis://…")
		}
		j.number = next.Number
		return next, nil
	}
	if j.lines+len(records) > 2*j.live+10_000 {
		replaced, err := j.rewrite(all)
		if replaced { // though with an error perhaps not on the disk yet
			j.number = next.Number
			return next, err
		}
		j.live = j.lines // there is room for the changes alone, perhaps; and it is not tried again with each of them
	}
	if err := j.open(); err != nil {
		return Position{}, err
	}
	var text bytes.Buffer
	for i, r := range records {
		l := journalLine{Name: r.Name, Entry: r.Text}
		if len(records) > 1 {
			l.Place, l.Of = i+1, len(records)
		}
		l.append(&text)
	}
	_, err := j.file.WriteAt(text.Bytes(), j.size)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.Close() // the next write removes what was written of this one
		return Position{}, err
	}
	j.size += int64(text.Len())
	j.lines += len(records)
	j.number = next.Number
	return next, nil
}

// open opens the file to write behind what is whole in it.
func (j *Journal) open() error {
	if j.file != nil {
		return nil
	}
	file, err := os.OpenFile(j.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = file.Truncate(j.size)
	}
	if err == nil {
		err = disk.SyncFolder(filepath.Dir(j.path))
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	j.file = file
	return nil
}

// rewrite writes a line for each client. It reports whether that is the file now, which it can be with an error.
func (j *Journal) rewrite(all func(func(Record) bool)) (replaced bool, err error) {
	lines, size := 0, int64(0)
	before, _ := os.Stat(j.path)
	err = disk.Replace(j.path, 0o600, func(w io.Writer) error {
		out := bufio.NewWriter(w)
		var text bytes.Buffer
		for r := range all {
			text.Reset()
			(&journalLine{Name: r.Name, Entry: r.Text}).append(&text)
			n, err := out.Write(text.Bytes())
			if err != nil {
				return err
			}
			lines, size = lines+1, size+int64(n)
		}
		return out.Flush()
	})
	if err != nil {
		now, wrong := os.Stat(j.path)
		if wrong != nil || before != nil && os.SameFile(before, now) {
			return false, err
		}
	}
	j.Close()
	j.lines, j.live, j.size = lines, lines, size
	return true, err
}

func (l *journalLine) append(to *bytes.Buffer) {
	line, _ := json.Marshal(l) // which was JSON before
	to.Write(line)
	to.WriteByte('\n')
}

// Watch implements Store.
func (j *Journal) Watch(ctx context.Context, look func()) error {
	look()
	<-ctx.Done()
	return ctx.Err()
}

// Close closes the file. Everything is on the disk already.
func (j *Journal) Close() {
	if j.file != nil {
		_ = j.file.Close()
		j.file = nil
	}
}
