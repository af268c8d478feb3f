package clients

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

func client(t testing.TB, text string) rule.Client {
	t.Helper()
	c, problems := rule.ReadClient("", []byte(text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

func put(t testing.TB, text string) Change { t.Helper(); return Change{Client: client(t, text)} }

// A client may come before its parent, and each change has an outcome of its own.
func TestApply(t *testing.T) {
	r := New(Options{})
	got, err := r.Apply(t.Context(), "ann", []Change{
		put(t, `{"client": "user:ann", "parent": "org:acme", "tier": "pro"}`),
		put(t, `{"client": "user:bob", "parent": "org:nobody"}`),
		put(t, `{"client": "org:acme", "limits": {"api": ["5/1m", "9/1h"]}}`),
	})
	if err != nil || got[0].Err != nil || got[1].Err == nil || got[2].Err != nil || !got[2].Created {
		t.Fatal(got, err)
	}
	if line := r.Line("user:ann"); len(line) != 2 || line[1].Name != "org:acme" || line[0].By != "ann" {
		t.Errorf("the line is %v", line)
	}
	if n := r.Count(); n != 2 || r.Tiers()["pro"] != 1 {
		t.Errorf("%d clients, %v", n, r.Tiers())
	}
}

// Pages have all clients once, in the order of their names, however few fit, and in whatever order the directory yields them.
func TestPages(t *testing.T) {
	r := New(Options{})
	var changes []Change
	var names []string
	for i := range 500 {
		name := fmt.Sprintf("user:%03d", i)
		names = append(names, name)
		changes = append(changes, put(t, `{"client": "`+name+`"}`))
	}
	rand.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
	if _, err := r.Apply(t.Context(), "ann", changes); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 7, 100, 499, 500, 501} {
		var got []string
		for q := (Query{Limit: limit}); ; {
			page, next := r.List(q)
			for _, e := range page {
				got = append(got, e.Name)
			}
			if len(page) > limit || next != "" && (len(page) < limit || next != page[limit-1].Name) {
				t.Fatalf("a page of %d has %d clients, and then %q", limit, len(page), next)
			}
			if q.After = next; next == "" {
				break
			}
		}
		if !slices.Equal(got, names) {
			t.Errorf("pages of %d have %d clients, from %q on", limit, len(got), got[:min(5, len(got))])
		}
	}
}

// Try says what Apply would do, changes nothing, and leaves nothing behind, however often it is called.
func TestTry(t *testing.T) {
	r := New(Options{})
	if _, err := r.Apply(t.Context(), "ann", []Change{put(t, `{"client": "org:acme"}`), put(t, `{"client": "user:ann", "parent": "org:acme"}`)}); err != nil {
		t.Fatal(err)
	}
	got, err := r.Try(t.Context(), []Change{
		put(t, `{"client": "user:bob", "parent": "org:new"}`),
		put(t, `{"client": "org:new", "parent": "org:acme"}`),
		put(t, `{"client": "user:ann", "parent": "org:acme"}`),
		put(t, `{"client": "user:ann"}`),
	})
	reason := func(o Outcome) any {
		if wrong, ok := errors.AsType[*Error](o.Err); ok {
			return wrong.Reason
		}
		return nil
	}
	if err != nil || reason(got[0]) != NoParent || reason(got[1]) != Cycle || !got[2].Unchanged || got[3].Err != nil {
		t.Fatal(got[0].Err, got[1].Err, got[2].Unchanged, got[3].Err, err)
	}
	if line := r.Line("user:ann"); r.Count() != 2 || len(line) != 2 {
		t.Errorf("%d clients, and the line is %v", r.Count(), line)
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range 30 {
		var changes []Change
		for j := range MaxChanges {
			changes = append(changes, Change{Client: rule.Client{Name: fmt.Sprint("user:x", j), Note: fmt.Sprint(i, " ", j, strings.Repeat("n", 200))}})
		}
		if _, err := r.Try(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
	}
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	runtime.KeepAlive(r)
}
