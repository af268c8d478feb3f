package tally

import (
	"fmt"
	"sync"
	"testing"

	"github.com/weirhq/weir/rule"
)

// The number of names stays within its bound under concurrent calls.
func TestNames(t *testing.T) {
	b := Names{Max: 10}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 100 {
				b.Of(fmt.Sprint((i*7 + j) % 100))
			}
		})
	}
	all.Wait()
	if len(b.known) != 10 {
		t.Errorf("%d labels", len(b.known))
	}
	for s := range b.known {
		if b.Of(s) != s {
			t.Errorf("%s was known, and is %s", s, b.Of(s))
		}
	}
}

// Rules with the same id count together, those beyond the bound with all others, and those of
// the index before with the rule that has their id now.
func TestIndex(t *testing.T) {
	type counters struct{ id string }
	entries := func(ids ...string) (all []*rule.Entry) {
		for _, id := range ids {
			all = append(all, &rule.Entry{Rule: &rule.Rule{ID: id}})
		}
		return all
	}
	other := &counters{Other}
	index := func(all []*rule.Entry, before *Index[counters], keep bool) *Index[counters] {
		r := Rules[counters]{Entries: all, Most: 2, Other: other, Before: before, KeepRetired: keep}
		r.Make = func(e *rule.Entry, number int) *counters {
			if e.ID == "none" {
				return nil
			}
			return &counters{fmt.Sprint(e.ID, number)}
		}
		return r.Index()
	}
	check := func(x *Index[counters], all []*rule.Entry, want ...string) {
		t.Helper()
		for i, e := range all {
			if got := x.Find(e).id; got != want[i] {
				t.Errorf("rule %d, %s, counts as %s, want %s", i, e.ID, got, want[i])
			}
		}
	}
	first := entries("none", "a", "b", "a", "c")
	x := index(first, nil, false)
	check(x, first, Other, "a0", "b1", "a0", Other)
	check(x, entries("a"), Other)
	if c, own := x.ByID("b"); !own || c.id != "b1" || !x.Beyond || len(x.All) != 3 {
		t.Errorf("b is %v, %v; beyond %v, %d in all", c, own, x.Beyond, len(x.All))
	}
	second := entries("b")
	y := index(second, x, false)
	check(y, second, "b0")
	check(y, first, Other, Other, "b0", Other, Other)
	if _, own := y.ByID("a"); own || y.Beyond {
		t.Errorf("a is still counted, or beyond is %v", y.Beyond)
	}
	check(index(second, x, true), first, Other, "a0", "b0", "a0", Other)
	check(index(second, y, true), first, Other, Other, Other, Other, Other) // only the index before
}
