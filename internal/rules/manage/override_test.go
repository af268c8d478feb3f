package manage

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// one is an override that was made at a time and ends at another, both in hours from now.
func one(id string, made, ends int) Override {
	return Override{
		ID: id, Rule: "api", Key: "user:" + id, Limits: []string{"5/1m"}, Reason: "why", Author: "alice",
		CreatedAt: now.Add(time.Duration(made) * time.Hour), EndsAt: now.Add(time.Duration(ends) * time.Hour),
	}
}

// kept is what is left of a list after it was written and read.
func kept(t *testing.T, l OverrideList) OverrideList {
	t.Helper()
	source := testkit.Must(l.Encode(now))(t)
	if len(source) > MaxOverrideBytes {
		t.Errorf("the overrideDocument has %d bytes", len(source))
	}
	return testkit.Must(DecodeOverrides(source))(t)
}

func TestStates(t *testing.T) {
	l := OverrideList{one("a", -1, 1), one("b", -2, 0), one("c", -3, 2)}
	l, ended := l.EndNow("c", "bob", now.Add(-time.Minute))
	if ended == nil || ended.EndedBy != "bob" {
		t.Fatalf("%+v", ended)
	}
	again := one("a", 0, 5)
	again.ID = "d"
	l = kept(t, l.Add(again))
	var got []string
	for i := range l {
		got = append(got, fmt.Sprint(l[i].ID, " ", l[i].State(now), " ", l[i].End().Sub(now)))
	}
	const want = "d active 5h0m0s, a replaced 0s, b expired 0s, c ended -1m0s"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("%s, want %s", text, want)
	}
	if l[1].ReplacedBy != "d" || l[1].EndedBy != "alice" {
		t.Errorf("%+v", l[1])
	}
	// What has ended does not end again, and what never was, not at all.
	for _, id := range []string{"a", "b", "c"} {
		if _, o := l.EndNow(id, "eve", now); o == nil || o.EndedBy == "eve" {
			t.Errorf("%+v", o)
		}
	}
	if _, o := l.EndNow("x", "eve", now); o != nil {
		t.Errorf("%+v", o)
	}
}

func TestBounds(t *testing.T) {
	var active, past OverrideList
	for i := range MaxOverrides {
		active = append(active, one(fmt.Sprint("active", i), -i, 10))
	}
	for i := range MaxPastOverrides + 100 {
		past = append(past, one(fmt.Sprint("past", i), -i-2, -i-1))
	}
	// The past goes by its end: after so many, and after so long.
	l := kept(t, append(past, active...))
	if len(l) != MaxOverrides+MaxPastOverrides || l[0].ID != "past0" || l[MaxPastOverrides-1].ID != fmt.Sprint("past", MaxPastOverrides-1) || l[MaxPastOverrides].ID != "active0" {
		t.Errorf("%d are kept, from %s on", len(l), l[0].ID)
	}
	hours := int(MaxPastOverrideTime / time.Hour)
	if l := kept(t, OverrideList{one("old", -5000, -hours-1), one("young", -5000, -hours)}); len(l) != 1 || l[0].ID != "young" {
		t.Errorf("%+v", l)
	}
	if _, err := active.Add(one("more", 0, 1)).Encode(now); !errors.Is(err, ErrManyOverrides) {
		t.Errorf("one more than can be: %v", err)
	}

	// The largest of their kind: the past makes room.
	for _, l := range []OverrideList{active, past} {
		for i := range l {
			l[i].Key, l[i].Reason = strings.Repeat("x", 1024), strings.Repeat("<", MaxOverrideReason) // six bytes each
		}
	}
	l = kept(t, append(past, active...))
	if n := len(l) - MaxOverrides; n < 1 || n >= MaxPastOverrides || l[0].ID != "past0" {
		t.Errorf("%d of the past are kept, from %s on", n, l[0].ID)
	}
	for i := range active {
		active[i].Key = strings.Repeat("<", 1024)
	}
	if _, err := active.Encode(now); !errors.Is(err, ErrManyOverrides) {
		t.Errorf("active ones that do not fit: %v", err)
	}
}

func TestDamaged(t *testing.T) {
	for _, source := range []string{
		"{", "[]", `{"overrides":1}`, `{"overrides":[1]}`, `{"overrides":[{"ends_at":"x"}]}`,
		`{"overrides":[` + strings.Repeat("{},", MaxOverrides+MaxPastOverrides) + `{}]}`, strings.Repeat(" ", MaxOverrideBytes+1),
	} {
		if l, err := DecodeOverrides([]byte(source)); err == nil {
			t.Errorf("%.40s: %d overrides", source, len(l))
		}
	}
	if l, err := DecodeOverrides(nil); l != nil || err != nil {
		t.Errorf("%v, %v", l, err)
	}
}
