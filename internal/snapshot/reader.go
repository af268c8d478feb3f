package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc64"
	"io"
)

// ErrDamaged is returned for data that Snapshot cannot have written.
var ErrDamaged = errors.New("it is damaged: it contains an invalid value")

// Reader reads until the first error, which makes all further words 0.
type Reader struct {
	Err     error
	Version int64 // of the file

	r   *bufio.Reader
	sum hash.Hash64
}

// Read reads a file whose contents are what body reads. body may stop early if Err is set.
func (f Format) Read(r io.Reader, body func(*Reader)) error {
	in := &Reader{r: bufio.NewReaderSize(r, 1<<16), sum: crc64.New(table)}
	err := f.head(in)
	if err == nil {
		body(in)
		err = in.end()
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

// end reads the checksum, after which nothing may follow.
func (r *Reader) end() error {
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
	if _, err := r.r.ReadByte(); err != io.EOF {
		return errors.New("it is damaged: data follows its end")
	}
	return nil
}

// Raw fills p.
func (r *Reader) Raw(p []byte) {
	if r.Err != nil {
		return
	}
	if _, r.Err = io.ReadFull(r.r, p); r.Err == io.EOF {
		r.Err = io.ErrUnexpectedEOF
	}
	r.sum.Write(p)
}

// Word reads a number.
func (r *Reader) Word() int64 {
	var p [8]byte
	r.Raw(p[:])
	if r.Err != nil {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(p[:]))
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
