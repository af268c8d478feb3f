package repotest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/rule"
)

func testWrite(t *testing.T, p Place) {
	r := p.Open()
	base := current(t, r)
	begin := time.Now()
	v := testcall.Must(r.Write(t.Context(), repo.Draft{Base: base.Number, Author: "alice", Source: source(4)}))(t)
	check(t, "what Write returns", v, base.Number+1, source(4))
	if v.Author != "alice" || v.Summary != "added login" {
		t.Errorf("author %q, summary %q", v.Author, v.Summary)
	}
	// Redis has a clock of its own.
	if v.Time.Before(begin.Add(-time.Minute)) || v.Time.After(time.Now().Add(time.Minute)) {
		t.Errorf("it was written at %v, and it is %v", v.Time, begin)
	}
	next := testcall.Must(r.Write(t.Context(), repo.Draft{Base: v.Number, Author: "bob", Summary: "more", Source: source(9)}))(t)
	got := current(t, r)
	check(t, "Current", got, v.Number+1, source(9))
	if got.Author != "bob" || got.Summary != "more" || !got.Time.Equal(next.Time) {
		t.Errorf("Current = %+v, want %+v", got, next)
	}
	if third := write(t, r, source(10)); third.Summary != "login: limit 10/1m → 11/1m" {
		t.Errorf("summary %q", third.Summary)
	}
	if fourth := write(t, r, source(10)); fourth.Summary != "nothing changed" {
		t.Errorf("summary %q", fourth.Summary)
	}
}

func testReopen(t *testing.T, p Place) {
	v := write(t, p.Open(), source(1))
	again := p.Open()
	got := current(t, again)
	check(t, "Current", got, v.Number, source(1))
	if !got.Time.Equal(v.Time) || got.Author != v.Author || got.Summary != v.Summary {
		t.Errorf("Current = %+v, want %+v", got, v)
	}
	check(t, "Write", write(t, again, source(2)), v.Number+1, source(2))
}

func testConflict(t *testing.T, p Place) {
	one, two := p.Open(), p.Open()
	base := current(t, two)
	v := write(t, one, source(1))
	for _, stale := range []int64{base.Number, v.Number + 1, -1} {
		_, err := two.Write(t.Context(), repo.Draft{Base: stale, Source: source(2)})
		var conflict *repo.ConflictError
		if !errors.As(err, &conflict) {
			t.Fatalf("Write upon %d = %v", stale, err)
		}
		check(t, "the conflict", conflict.Current, v.Number, source(1))
		if conflict.Base != stale || conflict.Current.Author != "test" {
			t.Errorf("the conflict is %+v", conflict)
		}
	}
	check(t, "Current", current(t, one), v.Number, source(1))
	check(t, "Write", write(t, two, source(2)), v.Number+1, source(2))
}

func testRollback(t *testing.T, p Place) {
	r := p.Open()
	old := write(t, r, source(1))
	write(t, r, source(2))
	found := testcall.Must(r.Find(t.Context(), old.Number))(t)
	v := testcall.Must(r.Write(t.Context(), repo.Draft{Base: current(t, r).Number, Summary: "back", Source: found.Source}))(t)
	check(t, "rolled back", v, old.Number+2, source(1))
	check(t, "Current", current(t, p.Open()), old.Number+2, source(1))
}

func testInvalid(t *testing.T, p Place) {
	r := p.Open()
	v := write(t, r, source(1))
	documents := map[string]string{"too large": "#" + strings.Repeat("x", rule.MaxDocument)}
	for name, bad := range unusable {
		documents[name] = bad
	}
	for name, bad := range documents {
		_, err := r.Write(t.Context(), repo.Draft{Base: v.Number, Source: []byte(bad)})
		if invalid, ok := errors.AsType[*rule.InvalidError](err); !ok || len(invalid.Problems) == 0 {
			t.Errorf("%s: Write = %v", name, err)
		}
	}
	check(t, "Current", current(t, p.Open()), v.Number, source(1))
}

func testBounds(t *testing.T, p Place) {
	r := p.Open()
	for _, text := range []string{strings.Repeat("é", 5000), "two\nlines\x00", "\xff", " \"quotes\" <&> \\ 'and' #more ", "{\"json\": [1]}"} {
		v := testcall.Must(r.Write(t.Context(), repo.Draft{Base: current(t, r).Number, Author: text, Summary: text, Source: source(1)}))(t)
		got := current(t, p.Open())
		if got.Author != v.Author || got.Summary != v.Summary {
			t.Errorf("%q and %q were read, %q and %q written", got.Author, got.Summary, v.Author, v.Summary)
		}
		if len(got.Author) > repo.MaxAuthor || len(got.Summary) > rule.MaxSummary || strings.ContainsAny(got.Author+got.Summary, "\n\x00") ||
			!utf8.ValidString(got.Author+got.Summary) {
			t.Errorf("%q and %q are too much, or no line", got.Author, got.Summary)
		}
	}
}

// testLarge has a document of a megabyte, which takes the race detector long enough to
// parse.
func testLarge(t *testing.T, p Place) {
	large := append(source(1), bytes.Repeat(append(bytes.Repeat([]byte("#"), 1<<10-1), '\n'), 1<<10)...)
	v := write(t, p.Open(), large)
	again := p.Open()
	check(t, "Current", current(t, again), v.Number, large)
	found := testcall.Must(again.Find(t.Context(), v.Number))(t)
	check(t, "Find", found, v.Number, large)
}

func testCancelled(t *testing.T, p Place) {
	r := p.Open()
	v := write(t, r, source(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"Current": testcall.Err(r.Current(ctx)),
		"Write":   testcall.Err(r.Write(ctx, repo.Draft{Base: v.Number, Source: source(2)})),
		"History": testcall.Err(r.History(ctx)),
		"Find":    testcall.Err(r.Find(ctx, v.Number)),
		"Watch":   r.Watch(ctx, func(repo.Version, error) {}),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s = %v", name, err)
		}
	}
	check(t, "Current", current(t, r), v.Number, source(1))
}
