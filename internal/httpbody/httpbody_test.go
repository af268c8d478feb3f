package httpbody

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

// Bodies of every length are read, with a length and without, in one read and byte by byte.
func TestRead(t *testing.T) {
	b := New(100 << 10)
	for _, n := range []int{0, 1, 511, 512, Free - 1, Free, Free + 1, 20_000, 20_001} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"known":   func(r io.Reader) io.Reader { return r },
			"unknown": func(r io.Reader) io.Reader { return io.MultiReader(r) },
			"slow":    func(r io.Reader) io.Reader { return iotest.OneByteReader(r) },
		} {
			text := strings.Repeat("a", n)
			body, release, err := b.Read(nil, httptest.NewRequest("POST", "/", wrap(strings.NewReader(text))), 20_000, nil)
			release()
			if n > 20_000 {
				if _, large := errors.AsType[*http.MaxBytesError](err); !large {
					t.Errorf("%d, %s: %v", n, name, err)
				}
			} else if err != nil || string(body) != text {
				t.Errorf("%d, %s: %d bytes, %v", n, name, len(body), err)
			}
		}
	}
	if !b.room.Try(100 << 10) {
		t.Error("some room was not given back")
	}
	broken := httptest.NewRequest("POST", "/", iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, release, err := b.Read(nil, broken, 10, nil); err != io.ErrUnexpectedEOF {
		t.Error(err)
	} else {
		release()
	}
}

// Without room, short bodies are read all the same, and long ones wait for a while.
func TestNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(10_000)
		read := func(n int) error {
			_, release, err := b.Read(nil, httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("a", n))), 1<<20, nil)
			t.Cleanup(release)
			return err
		}
		if err := read(10_000); err != nil {
			t.Fatal(err)
		}
		if err := read(Free - 1); err != nil {
			t.Errorf("a short one: %v", err)
		}
		if err := read(Free + 1); err != ErrBusy {
			t.Errorf("a long one: %v", err)
		}
	})
}
