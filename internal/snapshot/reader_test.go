package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc64"
	"strings"
	"testing"
)

// file is a snapshot of a number and two texts.
func file() []byte {
	b := append([]byte("weirtest"), 0, 0, 0, 0, 0, 0, 0, 0)
	b[8] = 3
	word := func(x uint64) { b = binary.LittleEndian.AppendUint64(b, x) }
	word(42)
	for _, text := range []string{"hello", ""} {
		word(1)
		word(uint64(len(text)))
		b = append(b, text...)
	}
	word(0)
	word(crc64.Checksum(b, Table))
	return b
}

func read(b []byte) (number int64, texts []string, err error) {
	r := NewReader(bytes.NewReader(b))
	if err := r.Head("weirtest", "tests", 3); err != nil {
		return 0, nil, err
	}
	number = r.Between(0, 100)
	for r.More() {
		texts = append(texts, string(r.Bytes(0, 10)))
	}
	return number, texts, r.End()
}

func TestReader(t *testing.T) {
	number, texts, err := read(file())
	if err != nil || number != 42 || len(texts) != 2 || texts[0] != "hello" || texts[1] != "" {
		t.Errorf("%d %q %v", number, texts, err)
	}
	for want, change := range map[string]func([]byte) []byte{
		"not a snapshot of weir's tests":  func(b []byte) []byte { b[0] = 'W'; return b },
		"it is of version 4, this weir":   func(b []byte) []byte { b[8] = 4; return b },
		"something in it makes no sense":  func(b []byte) []byte { b[16] = 101; return b },
		"the checksum does not fit":       func(b []byte) []byte { b[16] = 41; return b },
		"it ends in the middle":           func(b []byte) []byte { return b[:len(b)-1] },
		"something follows its end":       func(b []byte) []byte { return append(b, 0) },
		"damaged, something in it makes ": func(b []byte) []byte { b[32] = 255; return b }, // a length
	} {
		if _, _, err := read(change(file())); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for i := range file() {
		b := file()
		b[i] ^= 0x55
		if _, _, err := read(b); err == nil {
			t.Errorf("byte %d is wrong, and nobody noticed", i)
		}
		if _, _, err := read(file()[:i]); err == nil {
			t.Errorf("it ends after %d bytes, and nobody noticed", i)
		}
	}
}

// After the first error nothing else is read, and it stays what it was.
func TestFirstErrorStays(t *testing.T) {
	r := NewReader(strings.NewReader("12345678"))
	r.Must(false)
	if r.Word() != 0 || r.More() || r.Bytes(0, 5) != nil || r.Between(7, 9) != 7 || !errors.Is(r.End(), ErrDamaged) {
		t.Errorf("error %v", r.Err)
	}
}
