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
	"os"
	"path/filepath"

	"github.com/weirhq/weir/internal/disk"
)

// Journal is a store in a file that belongs to this process: a line for each change, which is on the disk before the change is
// in force. When it has twice as many lines as there are clients, it is written again.
type Journal struct {
	path  string
	file  *os.File // nil before Load
	size  int64    // of what is whole
	lines int
	live  int // at the last rewrite

	// Torn is how many bytes of a last line that was not written completely Load has removed.
	Torn int64
}

// NewJournal returns a store in a file, which is made by the first change.
func NewJournal(path string) *Journal { return &Journal{path: path} }

// journalLine is a line of the file. Without an entry, the client was deleted.
type journalLine struct {
	Name  string          `json:"name"`
	Entry json.RawMessage `json:"entry,omitempty"`
}

// maxLine bounds a line: an entry, and its name with escapes.
const maxLine = 128 << 10

// Load implements Store.
func (j *Journal) Load(_ context.Context, each func(Record)) (Position, int, error) {
	file, err := disk.Open(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Position{}, 0, nil
	} else if err != nil {
		return Position{}, 0, err
	}
	defer file.Close()
	j.size, j.lines = 0, 0
	in := bufio.NewReaderSize(file, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case err == io.EOF:
			j.Torn = int64(len(line)) // the process ended while it wrote, and nobody was told that it is there
			return Position{Number: uint64(j.lines)}, 0, nil
		case err != nil:
			// Zeros that a loss of power leaves have no end of a line. Anything else is no line of ours.
			torn := len(line)
			for ; err == bufio.ErrBufferFull; torn += len(line) {
				line, err = in.ReadSlice('\n')
			}
			if err != io.EOF {
				return Position{}, 0, j.damaged(bufio.ErrTooLong)
			}
			j.Torn = int64(torn)
			return Position{Number: uint64(j.lines)}, 0, nil
		}
		var l journalLine
		if err := json.Unmarshal(line, &l); err != nil {
			return Position{}, 0, j.damaged(err)
		}
		each(Record{l.Name, bytes.Clone(l.Entry)})
		j.lines++
		j.size += int64(len(line))
	}
}

func (j *Journal) damaged(err error) error {
	return fmt.Errorf("line %d of %s is damaged: %w; restore the file, or remove the line", j.lines+1, filepath.Base(j.path), err)
}

// Changes implements Store: nobody else writes.
func (j *Journal) Changes(_ context.Context, since Position) ([]Record, Position, error) {
	return nil, since, nil
}

// Write implements Store.
func (j *Journal) Write(_ context.Context, base Position, records []Record, all func(func(Record) bool)) (Position, error) {
	next := Position{Number: base.Number + uint64(len(records))}
	if j.lines+len(records) > 2*j.live+10_000 {
		replaced, err := j.rewrite(all)
		switch {
		case err == nil:
			return next, nil
		case replaced: // though perhaps not on the disk yet
			return Position{}, err
		}
		j.live = j.lines // there is room for the changes alone, perhaps; and it is not tried again with each of them
	}
	if err := j.open(); err != nil {
		return Position{}, err
	}
	var text bytes.Buffer
	for _, r := range records {
		r.appendLine(&text)
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
			r.appendLine(&text)
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

func (r Record) appendLine(to *bytes.Buffer) {
	line, _ := json.Marshal(journalLine{r.Name, r.Text}) // which was JSON before
	to.Write(line)
	to.WriteByte('\n')
}

// Watch implements Store.
func (j *Journal) Watch(ctx context.Context, look func()) error {
	return (*inMemory)(nil).Watch(ctx, look)
}

// Close closes the file. Everything is on the disk already.
func (j *Journal) Close() {
	if j.file != nil {
		_ = j.file.Close()
		j.file = nil
	}
}
