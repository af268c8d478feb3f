package repotest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
)

func testWrite(t *testing.T, p Place) {
	r := p.Open()
	base := current(t, r)
	begin := time.Now()
	v := testkit.Must(r.Write(t.Context(), repo.Draft{Base: base.Number, Author: "alice", Source: source(4)}))(t)
	check(t, "what Write returns", v, base.Number+1, source(4))
	if v.Author != "alice" || v.Summary != "added login" {
		t.Errorf("author %q, summary %q", v.Author, v.Summary)
	}
	// Redis has a clock of its own.
	if v.Time.Before(begin.Add(-time.Minute)) || v.Time.After(time.Now().Add(time.Minute)) {
		t.Errorf("it was written at %v, and it is %v", v.Time, begin)
	}
	next := testkit.Must(r.Write(t.Context(), repo.Draft{Base: v.Number, Author: "bob", Summary: "more", Source: source(9)}))(t)
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
	found := testkit.Must(r.Find(t.Context(), old.Number))(t)
	v := testkit.Must(r.Write(t.Context(), repo.Draft{Base: current(t, r).Number, Summary: "back", Source: found.Source}))(t)
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
		v := testkit.Must(r.Write(t.Context(), repo.Draft{Base: current(t, r).Number, Author: text, Summary: text, Source: source(1)}))(t)
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
	found := testkit.Must(again.Find(t.Context(), v.Number))(t)
	check(t, "Find", found, v.Number, large)
}

func testCancelled(t *testing.T, p Place) {
	r := p.Open()
	v := write(t, r, source(1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"Current": testkit.Err(r.Current(ctx)),
		"Write":   testkit.Err(r.Write(ctx, repo.Draft{Base: v.Number, Source: source(2)})),
		"History": testkit.Err(r.History(ctx)),
		"Find":    testkit.Err(r.Find(ctx, v.Number)),
		"Watch":   r.Watch(ctx, func(repo.Version, error) {}),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s = %v", name, err)
		}
	}
	check(t, "Current", current(t, r), v.Number, source(1))
}

func testHistory(t *testing.T, p Place) {
	r := p.Open()
	var written []repo.Version
	for i := range 5 {
		v := testkit.Must(r.Write(t.Context(), repo.Draft{Base: current(t, r).Number, Author: fmt.Sprint("author ", i), Source: source(i)}))(t)
		written = append(written, v)
	}
	again := p.Open()
	history := historyOf(t, again)
	for i, want := range written {
		got := history[len(written)-1-i]
		if got.Number != want.Number || got.Author != want.Author || got.Summary != want.Summary || !got.Time.Equal(want.Time) {
			t.Errorf("the history has %+v, want %+v", got, want)
		}
		found := testkit.Must(again.Find(t.Context(), want.Number))(t)
		check(t, "Find", found, want.Number, source(i))
		if found.Author != want.Author || found.Summary != want.Summary || !found.Time.Equal(want.Time) {
			t.Errorf("Find = %+v, want %+v", found, want)
		}
	}
	for _, n := range []int64{0, -1, written[4].Number + 1, 1 << 62} {
		if v, err := again.Find(t.Context(), n); !errors.Is(err, repo.ErrNoVersion) {
			t.Errorf("Find(%d) = %+v, %v", n, v, err)
		}
	}
}

// historyOf returns the history, of which it checks what is always so.
func historyOf(t *testing.T, r repo.Repository) []repo.Version {
	t.Helper()
	history := testkit.Must(r.History(t.Context()))(t)
	if len(history) > repo.MaxHistory {
		t.Errorf("the history has %d versions", len(history))
	}
	for i, v := range history {
		if i > 0 && v.Number != history[i-1].Number-1 {
			t.Errorf("after version %d the history has %d", history[i-1].Number, v.Number)
		}
		if v.Source != nil {
			t.Errorf("the history has a source of version %d", v.Number)
		}
	}
	if now := current(t, r); now.Number > 0 && (len(history) == 0 || history[0].Number != now.Number) {
		t.Errorf("the history does not begin with version %d, which is current", now.Number)
	}
	return history
}

func testHistoryIsBounded(t *testing.T, p Place) {
	r := p.Open()
	first := write(t, r, source(0))
	for i := range repo.MaxHistory + 5 {
		write(t, r, source(i+1))
	}
	history := historyOf(t, r)
	if len(history) != repo.MaxHistory {
		t.Fatalf("the history has %d versions, want %d", len(history), repo.MaxHistory)
	}
	oldest := history[len(history)-1].Number
	if oldest != first.Number+6 {
		t.Errorf("the oldest is %d, want %d", oldest, first.Number+6)
	}
	found := testkit.Must(r.Find(t.Context(), oldest))(t)
	check(t, "the oldest", found, oldest, source(6))
	if _, err := r.Find(t.Context(), oldest-1); !errors.Is(err, repo.ErrNoVersion) {
		t.Errorf("Find of what is too old = %v", err)
	}
}

// testWriters has writers who each read, and write upon what they have read. Every
// write that was accepted is in the history once, and none that was not.
func testWriters(t *testing.T, p Place) {
	const writers, each = 8, 6
	base := current(t, p.Open()).Number
	var mu sync.Mutex
	accepted := map[int64]string{}
	var wg sync.WaitGroup
	for w := range writers {
		r := p.Open()
		wg.Go(func() {
			for done := 0; done < each; {
				now, err := r.Current(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				author := fmt.Sprintf("writer %d, change %d", w, done)
				v, err := r.Write(t.Context(), repo.Draft{Base: now.Number, Author: author, Source: source(w*each + done)})
				var conflict *repo.ConflictError
				if errors.As(err, &conflict) {
					if conflict.Current.Number <= now.Number {
						t.Errorf("a conflict of %d with %d", now.Number, conflict.Current.Number)
					}
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				done++
				if v.Number != now.Number+1 {
					t.Errorf("version %d was based on %d, and the versions in between were not reported", v.Number, now.Number)
				}
				mu.Lock()
				if before := accepted[v.Number]; before != "" {
					t.Errorf("version %d is %s's and %s's", v.Number, before, author)
				}
				accepted[v.Number] = author
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	history := historyOf(t, p.Open())
	if got := history[0].Number - base; got != writers*each {
		t.Errorf("there are %d new versions, want %d", got, writers*each)
	}
	for _, v := range history {
		if v.Number > base && accepted[v.Number] != v.Author {
			t.Errorf("version %d is %q's, and was accepted from %q", v.Number, v.Author, accepted[v.Number])
		}
	}
}

// testForce has somebody edit the document by other means.
func testForce(t *testing.T, p Place) {
	r := p.Open()
	v := write(t, r, source(1))
	w := Watch(t, p.Open())
	w.WaitVersion(v.Number)
	p.Force(source(2))
	check(t, "Watch", w.WaitVersion(v.Number+1).Version, v.Number+1, source(2))
	check(t, "Current", current(t, r), v.Number+1, source(2))
	// Who has not seen it must not overwrite it.
	_, err := r.Write(t.Context(), repo.Draft{Base: v.Number, Source: source(3)})
	var conflict *repo.ConflictError
	if !errors.As(err, &conflict) {
		t.Errorf("Write upon what was changed = %v", err)
	}
	next := write(t, r, source(3))
	check(t, "Write", next, v.Number+2, source(3))
	found := testkit.Must(r.Find(t.Context(), v.Number+1))(t)
	check(t, "Find", found, v.Number+1, source(2))
	historyOf(t, r)
}

// testForceUnusable has somebody make a mistake: the version before stays in force, for
// those who were there and for those who come, and the mistake can be mended by hand or
// by a write.
func testForceUnusable(t *testing.T, p Place) {
	r := p.Open()
	v := write(t, r, source(1))
	w := Watch(t, p.Open())
	w.WaitVersion(v.Number)

	p.Force([]byte("rules: [oh"))
	w.WaitError(v.Number)
	check(t, "Current", current(t, r), v.Number, source(1))
	late := p.Open()
	check(t, "Current of one who comes", current(t, late), v.Number, source(1))
	lateWatch := Watch(t, late)
	lateWatch.WaitError(v.Number)
	if calls := lateWatch.Calls(); len(calls) != 2 || calls[0].Err != nil || calls[0].Version.Number != v.Number {
		t.Errorf("one who comes is told %+v, want the version, and then the error", calls)
	}

	// Mended by hand: a new version.
	p.Force(source(2))
	now := w.Wait("another version", func(c Call) bool { return c.Err == nil && c.Version.Number > v.Number }).Version
	check(t, "Watch", now, now.Number, source(2))
	check(t, "Current", current(t, r), now.Number, source(2))

	// Mended by a write upon what is in force.
	p.Force([]byte("rules: [no"))
	w.WaitError(now.Number)
	next := write(t, r, source(3))
	if next.Number <= now.Number {
		t.Errorf("version %d came after %d", next.Number, now.Number)
	}
	check(t, "Watch", w.WaitVersion(next.Number).Version, next.Number, source(3))

	// Each trouble is told once.
	errs := 0
	for _, c := range w.Calls() {
		if c.Err != nil {
			errs++
		}
	}
	if errs != 2 {
		t.Errorf("%d errors were told, want 2: %+v", errs, w.Calls())
	}
}

// testNeverInstalled tries every way in for documents that cannot be compiled. Watch
// looks at everything that comes out; here is the rest.
func testNeverInstalled(t *testing.T, p Place) {
	r := p.Open()
	v := write(t, r, source(0))
	w := Watch(t, p.Open())
	w.WaitVersion(v.Number)
	for name, bad := range unusable {
		if _, err := r.Write(t.Context(), repo.Draft{Base: v.Number, Source: []byte(bad)}); err == nil {
			t.Fatalf("%s: it was written", name)
		}
		p.Force([]byte(bad))
		w.WaitError(v.Number)
		for _, some := range []repo.Repository{r, p.Open()} {
			check(t, name+": Current", current(t, some), v.Number, v.Source)
			history := testkit.Must(some.History(t.Context()))(t)
			for _, old := range history {
				found := testkit.Must(some.Find(t.Context(), old.Number))(t)
				if _, err := rule.Usable("", found.Source); err != nil {
					t.Errorf("%s: version %d is in the history: %v", name, old.Number, err)
				}
			}
		}
		v = write(t, r, source(int(v.Number)))
		w.WaitVersion(v.Number)
	}
}
