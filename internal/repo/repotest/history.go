package repotest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/internal/testcall"
)

func testHistory(t *testing.T, p Place) {
	r := p.Open()
	var written []repo.Version
	for i := range 5 {
		v := testcall.Must(r.Write(t.Context(), repo.Draft{Base: current(t, r).Number, Author: fmt.Sprint("author ", i), Source: source(i)}))(t)
		written = append(written, v)
	}
	again := p.Open()
	history := historyOf(t, again)
	for i, want := range written {
		got := history[len(written)-1-i]
		if got.Number != want.Number || got.Author != want.Author || got.Summary != want.Summary || !got.Time.Equal(want.Time) {
			t.Errorf("the history has %+v, want %+v", got, want)
		}
		found := testcall.Must(again.Find(t.Context(), want.Number))(t)
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
	history := testcall.Must(r.History(t.Context()))(t)
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
	found := testcall.Must(r.Find(t.Context(), oldest))(t)
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
