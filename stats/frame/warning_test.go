package frame

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var warnings = rapid.Custom(func(t *rapid.T) Warning {
	name := rapid.SampledFrom([]string{"", "a", "user:alice", "\x00\xff"})
	return Warning{
		At: count(t, "at"), Rule: name.Draw(t, "rule"), Key: name.Draw(t, "key"), Policy: name.Draw(t, "policy"), Threshold: count(t, "threshold"),
		Used: count(t, "used"), Limit: count(t, "limit"), ResetAt: count(t, "reset"), Instance: name.Draw(t, "instance"),
	}
})

// A list keeps the newest, and the number counts all.
func TestTrimWarnings(t *testing.T) {
	var f Frame
	for i := range int64(MaxWarnings + 10) {
		f.Merge(&Frame{Warned: Warned{N: 2, List: []Warning{{At: i, Rule: "a"}}}})
	}
	f.Trim()
	w := f.Warned
	if len(w.List) != MaxWarnings || w.N != 2*(MaxWarnings+10) || w.List[0].At != MaxWarnings+9 || w.List[MaxWarnings-1].At != 10 {
		t.Errorf("%d of %d, %+v", len(w.List), w.N, w.List[0])
	}
	if f.Empty() || !slices.IsSortedFunc(w.List, compareWarnings) {
		t.Error("not sorted, or empty")
	}
}

// Frames with nothing new are written so that older instances can read them.
func TestWarningsVersion(t *testing.T) {
	for _, f := range []*Frame{{Warned: Warned{N: 1}}, {Requests: Counts{SoftDenied: 1}}, {Rules: map[Line]*Counts{{"a", ""}: {SoftDenied: 2}}}} {
		src := f.Append(nil)
		if got, err := Decode(src); src[0] != 5 || err != nil || !reflect.DeepEqual(got.Append(nil), src) || got.Warned.N != f.Warned.N || got.Requests != f.Requests {
			t.Errorf("version %d, %v: %+v", src[0], err, got)
		}
	}
	if src := (&Frame{Requests: Counts{Allowed: 1, Blocked: 1}}).Append(nil); src[0] != 2 {
		t.Errorf("version %d", src[0])
	}
}
