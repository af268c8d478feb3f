package replay

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// Log is one log to replay. It is read once.
type Log struct {
	name string
	from io.Reader
	file io.Closer // nil if there is nothing to close
	size int64     // on the disk; 0 if it is not known
	read atomic.Int64
}

// NewLog makes a log of what a reader has. The name is for messages.
func NewLog(name string, r io.Reader) *Log {
	l := &Log{name: name}
	l.from = &counting{r, &l.read}
	return l
}

// Open opens a log. One whose name ends in .gz is decompressed on the way.
func Open(path string) (*Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	l := NewLog(path, f)
	l.file = f
	info, err := f.Stat()
	switch {
	case err == nil && info.IsDir():
		err = fmt.Errorf("%s is a directory; give the files in it", path)
	case err == nil && info.Mode().IsRegular():
		l.size = info.Size()
	}
	if err == nil && strings.HasSuffix(path, ".gz") {
		l.from, err = gzip.NewReader(bufio.NewReaderSize(l.from, 1<<16))
		if err != nil {
			err = fmt.Errorf("%s: cannot be decompressed as gzip: %w", path, err)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// Close closes the file.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

// counting counts what was read.
type counting struct {
	r io.Reader
	n *atomic.Int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// Options of a replay.
type Options struct {
	// Table is the rules. It is needed.
	Table *rule.Table

	// Format is how the logs are written. Default what each line looks like.
	Format Format

	// Fields says where in a line things are. Default where they usually are.
	Fields Fields

	// Host is the host of requests whose line has none. Default unknown.
	Host string

	// Disorder is how far a line may be out of order to be put back into it. Default
	// 10 s; less than 0 is none.
	Disorder time.Duration

	// MaxKeys is the most clients that are remembered at once. Default
	// memory.DefaultMaxKeys.
	MaxKeys int

	// Flags is whether the reader of the report can set the flags of weir replay. Only
	// then does the report name them.
	Flags bool

	// MaxArrivals is the most arrivals of clients, at all limits together, that are
	// remembered for suggestions. Each takes 16 bytes, up to twice that while a client's
	// list grows, and the client's name besides.
	// Default 8,388,608.
	MaxArrivals int

	// Top is how many of the clients that were denied most are listed. Default 10.
	Top int

	// Shares are the shares of denied requests for which a limit is suggested.
	// Default 1 % and 0.1 %.
	Shares []float64

	// Progress is called from time to time with the progress of the replay. Default none.
	Progress func(Progress)
}

// plainly is a text without the flags at its end, if the reader has none.
func (o *Options) plainly(text string) string {
	if !o.Flags {
		text, _, _ = strings.Cut(text, flagsToSet)
	}
	return text
}

// flagsToSet begins the end of a text that names flags.
const flagsToSet = "; set --"

// Progress is how far a replay has come.
type Progress struct {
	Requests int64
	Denied   int64
	Read     int64 // bytes of the files, as they are on the disk
	Size     int64 // of all files; 0 if it is not known
}

// Bounds of a replay.
const (
	MaxLogs = 128 // that are merged

	maxDisorder = 24 * time.Hour
	maxTop      = 1000
)

func (o *Options) validate(logs int) error {
	switch {
	case o.Table == nil:
		return errors.New("replay: Options.Table is required; make one with rule.Compile")
	case logs == 0:
		return errors.New("replay: a log is required")
	case logs > MaxLogs:
		return fmt.Errorf("replay: %d logs are too many to merge; give at most %d", logs, MaxLogs)
	case o.Disorder > maxDisorder:
		return fmt.Errorf("replay: a disorder of %s is too long; use at most %s", o.Disorder, maxDisorder)
	case o.Top < 0 || o.Top > maxTop:
		return fmt.Errorf("replay: a list of %d clients is out of range; use 1 to %d", o.Top, maxTop)
	}
	for _, share := range o.Shares {
		if !(share >= 0 && share < 1) {
			return fmt.Errorf("replay: %v is not a share; write for example 0.01 for 1 %%", share)
		}
	}
	return nil
}

func (o *Options) setDefaults() {
	o.Disorder = cmp.Or(o.Disorder, 10*time.Second)
	o.MaxArrivals = cmp.Or(o.MaxArrivals, maxArrivals)
	o.MaxKeys = cmp.Or(o.MaxKeys, memory.DefaultMaxKeys)
	o.Top = cmp.Or(o.Top, 10)
	if o.Shares == nil {
		o.Shares = []float64{0.01, 0.001}
	}
}
