package memory

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/disk"
)

func include(t testing.TB, s *Store, k counter.Key, from, to int) counter.Amount {
	t.Helper()
	var after counter.Amount
	for ; from < to; from += counter.MaxBatch {
		var members []string
		for i := from; i < min(from+counter.MaxBatch, to); i++ {
			members = append(members, fmt.Sprint(i))
		}
		got, err := s.Add(t.Context(), counter.Delta{Key: k, Members: members})
		if err != nil {
			t.Fatal(err)
		}
		after = got[0]
	}
	return after
}

// After a restart, members are known that were counted before, be they few or many.
func TestDistinctSurvivesARestart(t *testing.T) {
	s, clock := newStore(t, Options{})
	few, many := counter.Key{Name: "few", Window: counter.Day, Distinct: true}, counter.Key{Name: "many", Window: counter.Month, Distinct: true}
	include(t, s, few, 0, 100)
	before := include(t, s, many, 0, 3000)
	clock.Set(clock.Now() + micros(24*time.Hour))
	include(t, s, few, 0, 2)
	next := restored(t, Options{Clock: clock.Now}, snapshotOf(t, s))
	wantSame(t, next, s)
	if got := include(t, next, few, 0, 3); got != counter.Whole(3) {
		t.Errorf("after the restart there are %v, want 3", got)
	}
	if got := include(t, next, many, 0, 3000); got != before {
		t.Errorf("after the restart there are %v, want %v", got, before)
	}
}

// A sketch weighs what it takes, so that the room bounds it.
func TestDistinctWeighs(t *testing.T) {
	s, _ := newStore(t, Options{})
	k := counter.Key{Name: "k", Distinct: true}
	for _, c := range []struct{ members, least, most int }{{1, 2, 2}, {500, 11, 12}, {600, 42, 43}} {
		include(t, s, k, 0, c.members)
		if n := s.Len(); n < c.least || n > c.most {
			t.Errorf("%d members are %d entries, want %d", c.members, n, c.least)
		}
	}
	if _, err := s.Reset(t.Context(), k); err != nil || s.Len() != 2 {
		t.Errorf("%v; after a reset there are %d entries", err, s.Len())
	}
	checkRoom(t, s)
}

// What cannot be a sketch is not taken for one, whoever has made the checksum right.
func TestDistinctNonsense(t *testing.T) {
	var words []byte
	for i := range int64(counter.ExactMembers + 1) {
		words = disk.AppendWords(words, i)
	}
	full := bytes.Repeat([]byte{51}, registers)
	for _, good := range [][]byte{nil, words[:8], words[:8*counter.ExactMembers], full} {
		var s sketch
		if !s.restore(slices.Clone(good)) || !bytes.Equal(s.bytes(), good) {
			t.Errorf("%d bytes are no sketch", len(good))
		}
		s.addHash(5)
		if s.count() < 1 {
			t.Errorf("of %d bytes, there are %d", len(good), s.count())
		}
	}
	for what, bad := range map[string][]byte{
		"half a word": words[:12], "twice": append(slices.Clone(words[:8]), words[:8]...), "order": append(slices.Clone(words[8:16]), words[:8]...),
		"too many": words, "rank": append(slices.Clone(full[1:]), 52),
	} {
		if new(sketch).restore(bad) {
			t.Errorf("%s: it is taken for a sketch", what)
		}
	}
}

// A distribution weighs what its buckets take.
func TestDistributionWeighs(t *testing.T) {
	s, clock := newStore(t, Options{Retention: counter.Retention{Seconds: 3}})
	k := counter.Key{Name: "k", Window: counter.Second}
	var values []counter.Amount
	for v := counter.Amount(1); len(values) < counter.MaxValues; v += 1 + v/40 {
		values = append(values, v)
	}
	for range 10 { // of which three can be read
		if err := s.Observe(t.Context(), counter.Sample{Key: k, Values: values}); err != nil {
			t.Fatal(err)
		}
		clock.Set(clock.Now() + micros(time.Second))
	}
	got, err := s.Distributions(t.Context(), 2, k)
	if err != nil || s.Len() != 1+3*(1+len(got[0][0].Buckets)/16) || len(got[0][0].Buckets) < 700 {
		t.Errorf("%v: %d buckets, three times, are %d entries", err, len(got[0][0].Buckets), s.Len())
	}
	checkRoom(t, s)
}
