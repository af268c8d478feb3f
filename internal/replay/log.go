package replay

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
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
		err = fmt.Errorf("%s is a directory; name the logs in it", path)
	case err == nil && info.Mode().IsRegular():
		l.size = info.Size()
	}
	if err == nil && strings.HasSuffix(path, ".gz") {
		l.from, err = gzip.NewReader(bufio.NewReaderSize(l.from, 1<<16))
		if err != nil {
			err = fmt.Errorf("%s: %w; is it really compressed?", path, err)
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
