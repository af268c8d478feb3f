// Package overridetest is the suite that every place of overrides must pass:
//
//	overridetest.Run(t, func(t *testing.T) func() override.Place {
//		dir := t.TempDir()
//		return func() override.Place { return file.In(dir) }
//	})
package overridetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/override"
	"github.com/weirhq/weir/internal/testcall"
)

// soon is how long anything may take that should take a second: the machine may have other
// things to do.
const soon = 2 * time.Minute

// Run runs the whole suite. The function makes new room for a document each time, and what it
// returns opens it, each time as if by another process.
func Run(t *testing.T, room func(t *testing.T) (open func() override.Place)) {
	for _, c := range []struct {
		name string
		test func(*testing.T, func() override.Place)
	}{
		{"Write", testWrite}, {"Large", testLarge}, {"Cancelled", testCancelled}, {"Writers", testWriters}, {"Watch", testWatch},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, room(t)) })
	}
}

func testWrite(t *testing.T, open func() override.Place) {
	a, b := open(), open()
	wantRead(t, a, override.Unknown, "", true)
	wantRead(t, a, "", "", false)
	base := override.Revision("")
	for _, text := range []string{"one", "two\x00\xff", "two", "one"} {
		testcall.OK(t, a.Write(t.Context(), base, []byte(text)))
		wantRead(t, b, base, text, true)
		if err := b.Write(t.Context(), base, []byte("lost")); !errors.Is(err, override.ErrChanged) {
			t.Errorf("a write upon what is not there any more: %v", err)
		}
		base = override.RevisionOf([]byte(text))
		wantRead(t, b, base, "", false)
	}
	wantRead(t, open(), override.Unknown, "one", true)
}

func wantRead(t *testing.T, p override.Place, known override.Revision, want string, changed bool) {
	t.Helper()
	source, got, err := p.Read(t.Context(), known)
	if err != nil || string(source) != want || got != changed {
		t.Errorf("Read(%.9q) = %.40q, %v, %v; want %q, %v", known, source, got, err, want, changed)
	}
}

func testLarge(t *testing.T, open func() override.Place) {
	p := open()
	large := []byte(strings.Repeat("x", override.MaxDocument))
	testcall.OK(t, p.Write(t.Context(), "", large))
	if source, changed, err := p.Read(t.Context(), ""); len(source) != len(large) || !changed || err != nil {
		t.Errorf("%d bytes, %v, %v", len(source), changed, err)
	}
	testcall.OK(t, p.Write(t.Context(), override.RevisionOf(large), append(large, 'x')))
	if source, changed, err := p.Read(t.Context(), ""); err == nil || changed || len(source) > 0 {
		t.Errorf("too many bytes: %d are read, %v, %v", len(source), changed, err)
	}
}

func testCancelled(t *testing.T, open func() override.Place) {
	p := open()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := p.Read(over, override.Unknown); !errors.Is(err, context.Canceled) {
		t.Errorf("Read: %v", err)
	}
	if err := p.Write(over, "", []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("Write: %v", err)
	}
	if err := p.Watch(over, func() {}); !errors.Is(err, context.Canceled) {
		t.Errorf("Watch: %v", err)
	}
}

// testWriters lets several append to the document at once. Nothing is lost.
func testWriters(t *testing.T, open func() override.Place) {
	const writers, each = 4, 10
	var all sync.WaitGroup
	for w := range writers {
		p := open()
		all.Go(func() {
			for i := range each {
				if err := appendTo(t.Context(), p, fmt.Sprintf("%d-%d ", w, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	source, _, err := open().Read(t.Context(), override.Unknown)
	testcall.OK(t, err)
	if n := len(strings.Fields(string(source))); n != writers*each {
		t.Errorf("%d of %d are there: %s", n, writers*each, source)
	}
}

func appendTo(ctx context.Context, p override.Place, text string) error {
	for {
		now, _, err := p.Read(ctx, override.Unknown)
		if err != nil {
			return err
		}
		err = p.Write(ctx, override.RevisionOf(now), append(now, text...))
		if !errors.Is(err, override.ErrChanged) {
			return err
		}
	}
}

// testWatch waits for each change to be seen.
func testWatch(t *testing.T, open func() override.Place) {
	writer, reader := open(), open()
	ctx, cancel := context.WithCancel(t.Context())
	looks, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- reader.Watch(ctx, func() {
			select {
			case looks <- struct{}{}:
			case <-ctx.Done():
			}
		})
	}()
	late := time.After(soon)
	for i := range 5 {
		testcall.OK(t, appendTo(t.Context(), writer, "x"))
		for {
			select {
			case <-looks:
			case <-late:
				t.Fatalf("change %d was not seen within %v", i, soon)
			}
			if source, _, _ := reader.Read(t.Context(), override.Unknown); len(source) == i+1 {
				break
			}
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Watch ended with %v", err)
	}
}
