// Package snapshot reads files of eight-byte words and texts that begin with a name and a
// version and end with a checksum. Whatever is torn, foreign or damaged is found out, and
// costs no more memory than it has bytes.
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

// ErrDamaged is something that nobody could have written.
var ErrDamaged = errors.New("it is damaged, something in it makes no sense")

// Table is of the checksum.
var Table = crc64.MakeTable(crc64.ECMA)

// Reader reads until the first error, which makes all further words 0.
type Reader struct {
	Err error

	r   *bufio.Reader
	sum hash.Hash64
}

// NewReader returns one at the beginning of a file.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 1<<16), sum: crc64.New(Table)}
}

// Head reads what a file begins with. The error says what it should have been.
func (r *Reader) Head(magic, what string, version int64) error {
	name := make([]byte, len(magic))
	r.Read(name)
	if r.Err != nil || string(name) != magic {
		return fmt.Errorf("it is not a snapshot of weir's %s", what)
	}
	if found := r.Word(); r.Err == nil && found != version {
		return fmt.Errorf("it is of version %d, this weir reads version %d", found, version)
	}
	return nil
}

// Read fills p.
func (r *Reader) Read(p []byte) {
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
	r.Read(p[:])
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

// Bytes reads a text, with its length before it.
func (r *Reader) Bytes(least, most int64) []byte {
	p := make([]byte, r.Between(least, most))
	r.Read(p)
	if r.Err != nil {
		return nil
	}
	return p
}

// Must fails unless something is as it has to be.
func (r *Reader) Must(ok bool) {
	if r.Err == nil && !ok {
		r.Err = ErrDamaged
	}
}

// End reads the checksum, after which nothing may follow.
func (r *Reader) End() error {
	sum := r.sum.Sum64()
	checksum := uint64(r.Word())
	switch {
	case errors.Is(r.Err, io.ErrUnexpectedEOF):
		return fmt.Errorf("it ends in the middle: %w", r.Err)
	case r.Err != nil:
		return r.Err
	case checksum != sum:
		return errors.New("it is damaged, the checksum does not fit")
	}
	if _, err := r.r.ReadByte(); err != io.EOF {
		return errors.New("it is damaged, something follows its end")
	}
	return nil
}
