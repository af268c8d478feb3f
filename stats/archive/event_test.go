package archive

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var denials = rapid.Custom(func(t *rapid.T) []Denial {
	var all []Denial
	for range rapid.IntRange(0, 12).Draw(t, "n") {
		all = append(all, Denial{
			At: Instant(rapid.Int64Range(0, 1<<50).Draw(t, "at")), Rule: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "rule"),
			Key: rapid.SampledFrom([]string{"", "x", "y\xff", "z"}).Draw(t, "key"), Tier: rapid.SampledFrom([]string{"", "pro"}).Draw(t, "tier"),
			Method: rapid.SampledFrom([]string{"", "GET"}).Draw(t, "method"), Path: rapid.SampledFrom([]string{"", "/a/{id}"}).Draw(t, "path"),
			Instance: "here", Cost: rapid.Int64Range(0, 9).Draw(t, "cost"),
			Shadow: rapid.Bool().Draw(t, "shadow"), Blocked: rapid.Bool().Draw(t, "blocked"), Unknown: rapid.Bool().Draw(t, "unknown"), Degraded: rapid.Bool().Draw(t, "degraded"), Crowded: rapid.Bool().Draw(t, "crowded"),
		})
	}
	SortDenials(all)
	return all
})

// Whatever is merged and trimmed, in whatever order: the bounds hold, nothing is made up,
// every rule keeps a denial, so does every client of a rule that has not too many, and of
// one client and rule the newest stay.
func TestDenialsAreFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, keys := rapid.IntRange(1, 20).Draw(t, "rules"), rapid.IntRange(1, 60).Draw(t, "keys")
		loud := rapid.IntRange(1, 400).Draw(t, "loud")
		var parts []*Frame
		var all []Denial
		for i := range rapid.IntRange(1, 4).Draw(t, "parts") {
			var part []Denial
			for n := range loud + rapid.IntRange(0, 80).Draw(t, "n") {
				d := Denial{At: Instant(rapid.Int64Range(0, 1000).Draw(t, "at")), Instance: fmt.Sprint(i, ".", n)} // all are different
				if d.Rule, d.Key = "0", "0"; n >= loud {
					d.Rule, d.Key = fmt.Sprint(rapid.IntRange(0, rules-1).Draw(t, "rule")), fmt.Sprint(rapid.IntRange(0, keys-1).Draw(t, "key"))
				}
				part = append(part, d)
			}
			SortDenials(part)
			all = append(all, part...)
			parts = append(parts, &Frame{Denials: part})
		}
		var sum Frame
		for _, p := range parts {
			sum.Merge(p)
			if rapid.Bool().Draw(t, "trim") {
				sum.Trim()
			}
		}
		sum.Trim()
		SortDenials(all)
		if len(sum.Denials) > MaxDenials || !slices.IsSortedFunc(sum.Denials, compareDenials) {
			t.Fatalf("%d denials, or out of order", len(sum.Denials))
		}
		ofRule, ofPair := map[string]int{}, map[[2]string]int{}
		for _, d := range sum.Denials {
			if !slices.Contains(all, d) {
				t.Fatalf("%+v never happened", d)
			}
			ofRule[d.Rule]++
			ofPair[[2]string{d.Rule, d.Key}]++
		}
		for _, n := range ofPair {
			if n > MaxDenialsKey {
				t.Fatalf("%d of one client", n)
			}
		}
		clients := map[string]map[string]bool{}
		for _, d := range all {
			if clients[d.Rule] == nil {
				clients[d.Rule] = map[string]bool{}
			}
			clients[d.Rule][d.Key] = true
		}
		for id, all := range clients {
			if ofRule[id] < min(len(all), MaxDenials/len(clients)) {
				t.Fatalf("of %d clients of the rule %s, %d denials are kept", len(all), id, ofRule[id])
			}
		}
		newest := map[[2]string]bool{}
		for _, d := range all {
			pair := [2]string{d.Rule, d.Key}
			if !newest[pair] && ofPair[pair] > 0 && !slices.ContainsFunc(sum.Denials, func(k Denial) bool { return k.Rule == d.Rule && k.Key == d.Key && k.At == d.At }) {
				t.Fatalf("the newest of %v is gone", pair)
			}
			newest[pair] = true
		}
	})
}

var warnings = rapid.Custom(func(t *rapid.T) Warning {
	name := rapid.SampledFrom([]string{"", "a", "user:alice", "\x00\xff"})
	return Warning{
		At: Instant(count(t, "at")), Rule: name.Draw(t, "rule"), Key: name.Draw(t, "key"), Policy: name.Draw(t, "policy"), Threshold: count(t, "threshold"),
		Used: count(t, "used"), Limit: count(t, "limit"), ResetAt: Instant(count(t, "reset")), Instance: name.Draw(t, "instance"),
	}
})

// A list keeps the newest, and the number counts all.
func TestTrimWarnings(t *testing.T) {
	var f Frame
	for i := range int64(MaxWarnings + 10) {
		f.Merge(&Frame{Warned: Warned{N: 2, List: []Warning{{At: Instant(i), Rule: "a"}}}})
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
	for _, f := range []*Frame{{Requests: Counts{UnknownClient: 1}}, {Priorities: Priorities{Low: Counts{UnknownClient: 1}}}, {Denials: []Denial{{At: 1, Key: "api_key:x", Unknown: true}}}} {
		src := f.Append(nil)
		if got, err := Decode(src); src[0] != 9 || err != nil || !reflect.DeepEqual(got.Append(nil), src) || got.Requests != f.Requests {
			t.Errorf("version %d, %v: %+v", src[0], err, got)
		}
	}
	for want, address := range map[byte]string{3: "", 8: "2001:db8::1"} {
		f := &Frame{Denials: []Denial{{At: 2, Key: "user:a", Address: address}, {At: 1, Key: "user:b", Cost: 3}}}
		src := f.Append(nil)
		if got, err := Decode(src); src[0] != want || err != nil || !slices.Equal(got.Denials, f.Denials) {
			t.Errorf("version %d, %v: %+v, want version %d", src[0], err, got, want)
		}
	}
	if src := (&Frame{Requests: Counts{Allowed: 1, Blocked: 1}}).Append(nil); src[0] != 2 {
		t.Errorf("version %d", src[0])
	}
}
