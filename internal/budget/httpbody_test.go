package budget

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

func (b *BodyReader) read(r io.Reader, most int64) ([]byte, func(), error) {
	return b.Read(BodySource{Request: httptest.NewRequest("POST", "/", r)}, most)
}

// Bodies of every length are read, with a length and without, in one read and byte by byte.
func TestRead(t *testing.T) {
	b := NewBodyReader(100 << 10)
	for _, n := range []int{0, 1, 511, 512, Free - 1, Free, Free + 1, step, step + 1, 2 * step, 40_000, 40_001} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"known":   func(r io.Reader) io.Reader { return r },
			"unknown": func(r io.Reader) io.Reader { return io.MultiReader(r) },
			"slow":    func(r io.Reader) io.Reader { return iotest.OneByteReader(r) },
		} {
			text := strings.Repeat("a", n)
			body, release, err := b.read(wrap(strings.NewReader(text)), 40_000)
			if n > 40_000 {
				if _, large := errors.AsType[*http.MaxBytesError](err); !large {
					t.Errorf("%d, %s: %v", n, name, err)
				}
			} else if err != nil || string(body) != text {
				t.Errorf("%d, %s: %d bytes, %v", n, name, len(body), err)
			}
			if took := 100<<10 - b.Free(); err == nil && (n < Free) != (took == 0) || took > int64(max(step, 2*n)) {
				t.Errorf("%d, %s: it takes %d bytes", n, name, took)
			}
			release()
		}
	}
	if b.Free() != 100<<10 {
		t.Error("some room was not given back")
	}
	if _, release, err := b.read(iotest.ErrReader(io.ErrUnexpectedEOF), 10); err != io.ErrUnexpectedEOF {
		t.Error(err)
	} else {
		release()
	}
}

// Without room, short bodies are read all the same, and long ones wait for a while.
func TestNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBodyReader(10_000)
		read := func(n int) error {
			_, release, err := b.read(strings.NewReader(strings.Repeat("a", n)), 1<<20)
			t.Cleanup(release)
			return err
		}
		if err := read(7_000); err != nil {
			t.Fatal(err)
		}
		if err := read(Free - 1); err != nil {
			t.Errorf("a short one: %v", err)
		}
		begun := time.Now()
		if err := read(Free + 1); err != ErrBusy || time.Since(begun) != 2*time.Second {
			t.Errorf("a long one: %v, after %v", err, time.Since(begun))
		}
	})
}

type looks struct{ err error }

func (l looks) Look() error { return l.err }

// Who must be asked before a long body is read is not asked before a short one.
func TestLong(t *testing.T) {
	b, no := NewBodyReader(100<<10), errors.New("no")
	for n, want := range map[int]error{Free - 1: nil, Free + 1: no} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("a", n)))
		if _, _, err := b.Read(BodySource{Request: r, Long: looks{no}}, 1<<20); err != want {
			t.Errorf("%d: %v, want %v", n, err, want)
		}
	}
}

// deadlines is a response that remembers the deadlines of its request.
type deadlines struct {
	http.ResponseWriter
	at []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.at = append(d.at, t)
	return nil
}

// A body has more time the more of it has come, but not more than there is, and none is left over.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, d := time.Now(), new(deadlines)
		r := httptest.NewRequest("POST", "/", iotest.OneByteReader(strings.NewReader(strings.Repeat("a", 30_000))))
		_, release, err := NewBodyReader(1<<20).Read(BodySource{Writer: d, Request: r, Pace: Pace{Timeout: time.Minute, Rate: 500}}, 1<<20)
		if release(); err != nil {
			t.Fatal(err)
		}
		for n, want := range map[int]time.Duration{0: Grace, 1000: Grace + 2*time.Second, 20_000: Grace + 40*time.Second, 29_000: time.Minute} {
			if got := d.at[n].Sub(began); got != want {
				t.Errorf("when %d bytes have come, the deadline is %v, want %v", n, got, want)
			}
		}
		if last := d.at[len(d.at)-1]; !last.IsZero() {
			t.Errorf("in the end it is %v", last)
		}
	})
}
