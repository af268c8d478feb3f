package disk

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

var format = Format{Package: "test", Magic: "weirtest", Of: "tests", Version: 3}

// file is a snapshot of a number and two texts.
func file(t *testing.T, f Format) []byte {
	t.Helper()
	var b bytes.Buffer
	err := f.Write(&b, func(w *Writer) {
		w.Words(42)
		w.Words(1)
		w.Texts("hello")
		w.Raw(AppendWords(nil, 1, 0))
		w.Words(0)
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(f Format, b []byte) (number int64, texts []string, err error) {
	err = f.Read(bytes.NewReader(b), func(r *Reader) {
		number = r.Between(0, 100)
		for r.More() {
			texts = append(texts, r.Text(0, 10))
		}
	})
	return number, texts, err
}

func TestFormat(t *testing.T) {
	whole := file(t, format)
	number, texts, err := read(format, whole)
	if err != nil || number != 42 || len(texts) != 2 || texts[0] != "hello" || texts[1] != "" {
		t.Errorf("%d %q %v", number, texts, err)
	}
	for want, change := range map[string]func([]byte) []byte{
		"not a snapshot of weir's tests":   func(b []byte) []byte { b[0] = 'W'; return b },
		"it is of version 4, this weir":    func(b []byte) []byte { b[8] = 4; return b },
		"it contains an invalid value":     func(b []byte) []byte { b[16] = 101; return b },
		"the checksum does not match":      func(b []byte) []byte { b[16] = 41; return b },
		"it ends in the middle":            func(b []byte) []byte { return b[:len(b)-1] },
		"data follows its end":             func(b []byte) []byte { return append(b, 0) },
		"damaged: it contains an invalid ": func(b []byte) []byte { b[32] = 255; return b }, // a length
	} {
		_, _, err := read(format, change(bytes.Clone(whole)))
		if err == nil || !strings.HasPrefix(err.Error(), "test: the snapshot cannot be used: it ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 0x55
		if _, _, err := read(format, b); err == nil {
			t.Errorf("byte %d is wrong, but there was no error", i)
		}
		if _, _, err := read(format, whole[:i]); err == nil {
			t.Errorf("it ends after %d bytes, but there was no error", i)
		}
	}
}

// Older versions are read as far back as the format says.
func TestVersions(t *testing.T) {
	from2 := format
	from2.Oldest = 2
	for version, want := range map[int64]string{
		1: "it is of version 1, this weir reads versions 2 to 3", 2: "", 3: "", 4: "it is of version 4, this weir reads versions 2 to 3",
	} {
		old := format
		old.Version = version
		_, _, err := read(from2, file(t, old))
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("version %d: error %v, want %q", version, err, want)
		}
	}
}

// A long text comes back whole. One that is announced only costs what is there.
func TestLongText(t *testing.T) {
	text := strings.Repeat("0123456789", step/4)
	var b bytes.Buffer
	if err := format.Write(&b, func(w *Writer) { w.Texts(text) }); err != nil {
		t.Fatal(err)
	}
	if err := format.Read(&b, func(r *Reader) {
		if got := r.Text(0, 1<<40); got != text {
			t.Errorf("%d bytes came back of %d", len(got), len(text))
		}
	}); err != nil {
		t.Error(err)
	}
	announced := AppendWords([]byte("weirtest"), 3, 1<<40)
	if err := format.Read(bytes.NewReader(announced), func(r *Reader) { r.Bytes(0, 1<<40) }); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
}

// After the first error nothing else is read, and it stays what it was.
func TestFirstErrorStays(t *testing.T) {
	err := format.Read(bytes.NewReader(file(t, format)), func(r *Reader) {
		r.Must(false)
		if r.Word() != 0 || r.More() || r.Bytes(0, 5) != nil || r.Between(7, 9) != 7 {
			t.Errorf("something was read after %v", r.Err)
		}
	})
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("error %v", err)
	}
}
