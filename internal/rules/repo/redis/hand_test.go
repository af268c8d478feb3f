package redis

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/repo/repotest"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// Who puts a document there by hand, and does it well or less so, has made a version.
func TestByHand(t *testing.T) {
	const key = "weir:{rules}:current"
	server := testredis.Start(t)
	r := open(t, clientOf(t, server), Options{})
	write(t, r, documentOf(1))
	w := repotest.Watch(t, open(t, clientOf(t, server), Options{}))
	w.WaitVersion(1)

	server.Do("HSET", key, "number", "8", "source", string(documentOf(2)))
	v := w.WaitVersion(8).Version
	if string(v.Source) != string(documentOf(2)) || v.Author != "redis" || v.Summary != "a: limit 1/1m → 2/1m" || v.Time.IsZero() {
		t.Errorf("%+v", v)
	}
	// Without a new number: the size tells the watch.
	server.Do("HSET", key, "source", string(documentOf(30)))
	if v := w.WaitVersion(9).Version; string(v.Source) != string(documentOf(30)) {
		t.Errorf("%+v", v)
	}
	// Or anybody who reads it.
	server.Do("HSET", key, "source", string(documentOf(40)))
	if v := current(t, r); v.Number != 10 || string(v.Source) != string(documentOf(40)) {
		t.Errorf("%+v", v)
	}
	w.WaitVersion(10)
	history, err := r.History(t.Context())
	if err != nil || len(history) != 4 {
		t.Fatalf("History = %+v, %v", history, err)
	}
	for i, want := range []int64{10, 9, 8, 1} {
		if history[i].Number != want {
			t.Errorf("the history has %d, want %d", history[i].Number, want)
		}
	}
	for number, n := range map[int64]int{1: 1, 8: 2, 9: 30, 10: 40} {
		if v, err := r.Find(t.Context(), number); err != nil || string(v.Source) != string(documentOf(n)) {
			t.Errorf("Find(%d) = %+v, %v", number, v, err)
		}
	}
}

// What is adopted is what was found good, and nothing that came in its place.
func TestAdoptIsCareful(t *testing.T) {
	server := testredis.Start(t)
	r := open(t, clientOf(t, server), Options{})
	write(t, r, documentOf(1))
	force(server, DefaultPrefix, documentOf(2))
	s, err := r.readState(t.Context(), mark{number: "unknown"})
	if err != nil || !s.byHand {
		t.Fatalf("%+v, %v", s, err)
	}
	if s.raw.Document, err = r.Read(s.raw.Source); err != nil {
		t.Fatal(err)
	}
	server.Do("HSET", "weir:{rules}:current", "source", "rules: [")
	r.adopt(t.Context(), s)
	if v := current(t, r); v.Number != 1 {
		t.Errorf("Current = %+v", v)
	}
	if got := server.Do("HKEYS", "weir:{rules}:history"); got != "1" {
		t.Errorf("the history has %q", got)
	}
	// Who writes over a document with errors is told.
	if v, err := r.Write(t.Context(), repo.Draft{Base: 1, Source: documentOf(3)}); err != nil || v.Replaced == nil || v.Replaced.Copy != "" {
		t.Errorf("Write = %+v, %v", v, err)
	} else if v, err = r.Write(t.Context(), repo.Draft{Base: v.Number, Source: documentOf(4)}); err != nil || v.Replaced != nil {
		t.Errorf("Write = %+v, %v", v, err)
	}
}

// Who may only read sees what was put there by hand, too.
func TestReadOnly(t *testing.T) {
	server := testredis.Start(t)
	write(t, open(t, clientOf(t, server), Options{}), documentOf(1))
	force(server, DefaultPrefix, documentOf(2))
	server.Do("ACL", "SETUSER", "default", "-hset")
	r := open(t, clientOf(t, server), Options{})
	if v := current(t, r); v.Number != 2 || v.Author != "redis" || !v.Time.IsZero() {
		t.Errorf("Current = %+v", v)
	}
	if history, err := r.History(t.Context()); err != nil || len(history) != 2 {
		t.Errorf("History = %+v, %v", history, err)
	}
	w := repotest.Watch(t, r)
	w.WaitVersion(2)
	if calls := w.Calls(); len(calls) != 1 || strings.Contains(string(calls[0].Version.Source), "1/1m") {
		t.Errorf("%+v", calls)
	}
}
