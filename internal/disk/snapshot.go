package disk

import (
	"bufio"
	"encoding/binary"
	"fmt"
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

// AppendTexts appends what Texts writes.
func AppendTexts(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = append(AppendWords(b, int64(len(s))), s...)
	}
	return b
}
