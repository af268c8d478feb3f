package repotest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/testkit"
)

// Most is how many bytes a store must read that RunStore is run with.
const Most = 4 << 20

// RunStore runs the suite of a store without a history. The function makes a new place for a document
// each time, and what it returns opens it, each time as if by another process.
func RunStore(t *testing.T, place func(t *testing.T) (open func() repo.Store)) {
	for _, c := range []struct {
		name string
		test func(*testing.T, func() repo.Store)
	}{
		{"Write", testStoreWrite}, {"Large", testStoreLarge}, {"Cancelled", testStoreCancelled}, {"Writers", testStoreWriters}, {"Watch", testStoreWatch},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, place(t)) })
	}
}

func testStoreWrite(t *testing.T, open func() repo.Store) {
	a, b := open(), open()
	wantRead(t, a, repo.Unknown, "", true)
	wantRead(t, a, "", "", false)
	base := repo.Revision("")
	for _, text := range []string{"one", "two\x00\xff", "two", "one"} {
		testkit.OK(t, a.Write(t.Context(), base, []byte(text)))
		wantRead(t, b, base, text, true)
		if err := b.Write(t.Context(), base, []byte("lost")); !errors.Is(err, repo.ErrChanged) {
			t.Errorf("a write upon what is not there any more: %v", err)
		}
		base = repo.RevisionOf([]byte(text))
		wantRead(t, b, base, "", false)
	}
	wantRead(t, open(), repo.Unknown, "one", true)
}

func wantRead(t *testing.T, p repo.Store, known repo.Revision, want string, changed bool) {
	t.Helper()
	source, got, err := p.Read(t.Context(), known)
	if err != nil || string(source) != want || got != changed {
		t.Errorf("Read(%.9q) = %.40q, %v, %v; want %q, %v", known, source, got, err, want, changed)
	}
}

func testStoreLarge(t *testing.T, open func() repo.Store) {
	p := open()
	large := []byte(strings.Repeat("x", Most))
	testkit.OK(t, p.Write(t.Context(), "", large))
	if source, changed, err := p.Read(t.Context(), ""); len(source) != len(large) || !changed || err != nil {
		t.Errorf("%d bytes, %v, %v", len(source), changed, err)
	}
	testkit.OK(t, p.Write(t.Context(), repo.RevisionOf(large), append(large, 'x')))
	if source, changed, err := p.Read(t.Context(), ""); err == nil || changed || len(source) > 0 {
		t.Errorf("too many bytes: %d are read, %v, %v", len(source), changed, err)
	}
}

func testStoreCancelled(t *testing.T, open func() repo.Store) {
	p := open()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := p.Read(over, repo.Unknown); !errors.Is(err, context.Canceled) {
		t.Errorf("Read: %v", err)
	}
	if err := p.Write(over, "", []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("Write: %v", err)
	}
	if err := p.Watch(over, func() {}); !errors.Is(err, context.Canceled) {
		t.Errorf("Watch: %v", err)
	}
}

// testStoreWriters lets several append to the document at once. Nothing is lost.
func testStoreWriters(t *testing.T, open func() repo.Store) {
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
	source, _, err := open().Read(t.Context(), repo.Unknown)
	testkit.OK(t, err)
	if n := len(strings.Fields(string(source))); n != writers*each {
		t.Errorf("%d of %d are there: %s", n, writers*each, source)
	}
}

func appendTo(ctx context.Context, p repo.Store, text string) error {
	for {
		now, _, err := p.Read(ctx, repo.Unknown)
		if err != nil {
			return err
		}
		err = p.Write(ctx, repo.RevisionOf(now), append(now, text...))
		if !errors.Is(err, repo.ErrChanged) {
			return err
		}
	}
}

// testStoreWatch waits for each change to be seen.
func testStoreWatch(t *testing.T, open func() repo.Store) {
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
		testkit.OK(t, appendTo(t.Context(), writer, "x"))
		for {
			select {
			case <-looks:
			case <-late:
				t.Fatalf("change %d was not seen within %v", i, soon)
			}
			if source, _, _ := reader.Read(t.Context(), repo.Unknown); len(source) == i+1 {
				break
			}
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Watch ended with %v", err)
	}
}
