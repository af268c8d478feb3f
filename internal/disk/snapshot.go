package disk

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc64"
	"io"
)

// Format is of the files that one package writes and reads.
type Format struct {
	Package string // begins every error
	Magic   string // the first bytes of a file
	Of      string // what is in it, in an error
	Version int64  // is written
	Oldest  int64  // version that is still read; 0 stands for Version
}

var table = crc64.MakeTable(crc64.ECMA)

// Write writes a file whose contents are what body writes.
func (f Format) Write(w io.Writer, body func(*Writer)) error {
	sum := crc64.New(table)
	out := &Writer{bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)}
	out.Raw([]byte(f.Magic))
	out.Words(f.Version)
	body(out)
	err := out.w.Flush()
	if err == nil {
		// Not through the buffer, which would sum the sum.
		_, err = w.Write(AppendWords(nil, int64(sum.Sum64())))
	}
	if err != nil {
		return fmt.Errorf("%s: writing the snapshot: %w", f.Package, err)
	}
	return nil
}

// Writer writes until the first error, which Format.Write reports.
type Writer struct{ w *bufio.Writer }

// Raw writes bytes as they are.
func (w *Writer) Raw(p []byte) { w.w.Write(p) }

// Words writes numbers.
func (w *Writer) Words(words ...int64) { w.w.Write(AppendWords(w.w.AvailableBuffer(), words...)) }

// Texts writes texts.
func (w *Writer) Texts(texts ...string) {
	for _, s := range texts {
		w.Words(int64(len(s)))
		w.w.WriteString(s)
	}
}

// AppendWords appends what Words writes.
func AppendWords(b []byte, words ...int64) []byte {
	for _, x := range words {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	return b
}

// ErrDamaged is returned for data that Snapshot cannot have written.
var ErrDamaged = errors.New("it is damaged: it contains an invalid value")

// Reader reads until the first error, which makes all further words 0.
type Reader struct {
	Err     error
	Version int64 // of the file

	r   io.Reader
	sum hash.Hash64

	// What was read: up to summed it is in the checksum, and up to at it was taken.
	buffer          []byte
	summed, at, end int
}

// Read reads a file whose contents are what body reads. body may stop early if Err is set.
func (f Format) Read(r io.Reader, body func(*Reader)) error {
	in := &Reader{r: r, sum: crc64.New(table), buffer: make([]byte, 1<<16)}
	err := f.head(in)
	if err == nil {
		body(in)
		err = in.finish()
	}
	if err != nil {
		return fmt.Errorf("%s: the snapshot cannot be used: %w", f.Package, err)
	}
	return nil
}

// head reads what a file begins with.
func (f Format) head(in *Reader) error {
	name := make([]byte, len(f.Magic))
	in.Raw(name)
	if in.Err != nil || string(name) != f.Magic {
		return fmt.Errorf("it is not a snapshot of weir's %s", f.Of)
	}
	found := in.Word()
	in.Version = found
	switch {
	case in.Err != nil || found == f.Version || f.Oldest > 0 && f.Oldest <= found && found < f.Version:
		return nil // an error is that it ends here
	case f.Oldest > 0:
		return fmt.Errorf("it is of version %d, this weir reads versions %d to %d", found, f.Oldest, f.Version)
	}
	return fmt.Errorf("it is of version %d, this weir reads version %d", found, f.Version)
}

// finish reads the checksum, after which nothing may follow.
func (r *Reader) finish() error {
	r.addUp()
	sum := r.sum.Sum64()
	checksum := uint64(r.Word())
	switch {
	case errors.Is(r.Err, io.ErrUnexpectedEOF):
		return fmt.Errorf("it ends in the middle: %w", r.Err)
	case r.Err != nil:
		return r.Err
	case checksum != sum:
		return errors.New("it is damaged: the checksum does not match")
	}
	if r.need(1) {
		return errors.New("it is damaged: data follows its end")
	}
	return nil
}

// need reads until so many bytes are there to be taken. They must fit into the buffer.
func (r *Reader) need(n int) bool {
	if r.Err != nil || r.end-r.at >= n {
		return r.Err == nil
	}
	r.addUp()
	r.end = copy(r.buffer, r.buffer[r.at:r.end])
	r.summed, r.at = 0, 0
	more, err := io.ReadAtLeast(r.r, r.buffer[r.end:], n-r.end)
	r.end += more
	if r.Err = err; err == io.EOF {
		r.Err = io.ErrUnexpectedEOF
	}
	return r.Err == nil
}

// addUp adds what was taken to the checksum: many words at once, which is faster.
func (r *Reader) addUp() {
	r.sum.Write(r.buffer[r.summed:r.at])
	r.summed = r.at
}

// Raw fills p.
func (r *Reader) Raw(p []byte) {
	for len(p) > 0 && r.need(1) {
		n := copy(p, r.buffer[r.at:r.end])
		r.at += n
		p = p[n:]
	}
}

// Word reads a number.
func (r *Reader) Word() int64 {
	if !r.need(8) {
		return 0
	}
	x := binary.LittleEndian.Uint64(r.buffer[r.at:])
	r.at += 8
	return int64(x)
}

// Between reads a number in a range, and else fails. After a failure it is least.
func (r *Reader) Between(least, most int64) int64 {
	x := r.Word()
	r.Must(x >= least && x <= most)
	if r.Err != nil {
		return least
	}
	return x
}

// More reads whether another follows.
func (r *Reader) More() bool { return r.Between(0, 1) == 1 && r.Err == nil }

// step is how much of a text is read at once, so that a short file cannot ask for much
// memory.
const step = 1 << 16

// Bytes reads a text, whose length has to be in a range.
func (r *Reader) Bytes(least, most int64) []byte {
	n := int(r.Between(least, most))
	p := make([]byte, min(n, step))
	r.Raw(p)
	for len(p) < n && r.Err == nil {
		more := min(n-len(p), step)
		p = append(p, make([]byte, more)...)
		r.Raw(p[len(p)-more:])
	}
	if r.Err != nil {
		return nil
	}
	return p
}

// Text reads a text, too.
func (r *Reader) Text(least, most int64) string { return string(r.Bytes(least, most)) }

// Must fails unless something is as it has to be.
func (r *Reader) Must(ok bool) {
	if r.Err == nil && !ok {
		r.Err = ErrDamaged
	}
}
