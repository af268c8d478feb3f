// Package archivetest is a test suite that every implementation of archive.Store must
// pass:
//
//	archivetest.Run(t, func(t *testing.T) (a, b archive.Store) { … })
//
// It also has functions for the tests of a single implementation.
package archivetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/stats/archive"
)

// Open returns two instances that share one new archive. If an archive can have only
// one instance, both are the same.
type Open func(t *testing.T) (a, b archive.Store)

// Run runs the whole suite.
func Run(t *testing.T, open Open) {
	for _, part := range []struct {
		name string
		test func(*testing.T, Open)
	}{
		{"Kinds", testKinds},
		{"Revisions", testRevisions},
		{"Denials", testDenials},
		{"Lead", testLead},
		{"Notes", testNotes},
		{"NotesAreBounded", testNotesAreBounded},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, open) })
	}
}

// Epoch is a time in the middle of a day, an hour and a minute.
const Epoch = 1_790_000_000

// SomeFrame returns a frame with n requests, half of them denied by a rule.
func SomeFrame(n int64) *archive.Frame {
	f := &archive.Frame{Requests: archive.Counts{Allowed: n - n/2, Denied: n / 2}}
	f.Decision.Put(archive.DurationSlot(time.Duration(n)*time.Microsecond), n)
	f.Rule(archive.Line{Rule: "api"}).Denied = n / 2
	f.Rule(archive.Line{Rule: "api", Tier: "pro"}).Allowed = n - n/2
	return f
}

// Part returns a part with a frame.
func Part(kind archive.Kind, start int64, id string, f *archive.Frame) archive.Part {
	return archive.Part{Kind: kind, Start: start, ID: id, Frame: f.Append(nil)}
}

// Total returns the number of requests of a level, and checks that its slots are
// consistent.
func Total(t testing.TB, a archive.Store, kind archive.Kind, level int, from, to int64) int64 {
	t.Helper()
	slots := testkit.Must(a.Read(t.Context(), kind, level, from, to))(t)
	n := int64(0)
	for i, s := range slots {
		rules := archive.Counts{}
		for _, c := range s.Frame.Rules {
			rules.Add(*c)
		}
		if rules != s.Frame.Requests || s.Frame.Decision.Count != rules.Total() {
			t.Fatalf("level %d, slot %d: requests %+v, rules %+v, %d timed", level, s.Start, s.Frame.Requests, rules, s.Frame.Decision.Count)
		}
		if i > 0 && s.Start <= slots[i-1].Start || s.Start%a.Levels(kind)[level].Step != 0 {
			t.Fatalf("level %d: slot %d is out of order", level, s.Start)
		}
		n += s.Frame.Requests.Total()
	}
	return n
}

// Rankings and details have their own levels, before and after they are rolled up.
func testKinds(t *testing.T, open Open) {
	a, b := open(t)
	for i := range int64(60) {
		f := &archive.Frame{}
		f.Ranking("").Denied = archive.Sketch{Entries: []archive.Entry{{Key: "user:alice", Count: 3}}, Total: 3}
		f.Detail("api").Decision.Record(time.Millisecond)
		testkit.OK(t, a.Add(t.Context(), []archive.Part{Part(archive.Top, Epoch+10*i, fmt.Sprint("t", i), f), Part(archive.Rules, Epoch+10*i, fmt.Sprint("r", i), f)}))
	}
	for range 2 {
		for level := range 3 {
			count, timed := int64(0), int64(0)
			top := testkit.Must(b.Read(t.Context(), archive.Top, level, Epoch, Epoch+600))(t)
			for _, s := range top {
				count += s.Frame.Top[""].Denied.Entries[0].Count
			}
			rules := testkit.Must(a.Read(t.Context(), archive.Rules, level, Epoch, Epoch+600))(t)
			for _, s := range rules {
				timed += s.Frame.Details["api"].Decision.Count
			}
			if count != 180 || timed != 60 {
				t.Errorf("level %d has %d denials and %d times", level, count, timed)
			}
		}
		testkit.OK(t, a.RollUp(t.Context(), time.Unix(Epoch+24*3600, 0)))
	}
	if _, err := a.Read(t.Context(), archive.Series, 0, 0, Epoch); err == nil {
		t.Error("sixty years of seconds are read")
	}
}

// The highest revision of a part counts, once, at every level and whatever the order; parts
// of others and of the next slots add up with it.
func testRevisions(t *testing.T, open Open) {
	a, b := open(t)
	part := func(id string, revision, start, n int64) archive.Part {
		f := &archive.Frame{}
		f.Ranking("").Denied = archive.Sketch{Entries: []archive.Entry{{Key: "user:alice", Count: n}}, Total: n}
		p := Part(archive.Top, start, id, f)
		p.Revision = revision
		return p
	}
	want := func(total int64) {
		t.Helper()
		for level := range 3 {
			count := int64(0)
			for _, s := range testkit.Must(b.Read(t.Context(), archive.Top, level, Epoch-3600, Epoch+7200))(t) {
				count += s.Frame.Top[""].Denied.Of("user:alice")
			}
			if count != total {
				t.Errorf("level %d has %d, want %d", level, count, total)
			}
		}
	}
	for _, c := range []struct {
		by    archive.Store
		part  archive.Part
		total int64
	}{
		{a, part("a1", 1, Epoch, 10), 10},
		{b, part("b1", 1, Epoch, 100), 110},
		{a, part("a1", 3, Epoch, 30), 130},
		{a, part("a1", 2, Epoch, 20), 130}, // late
		{a, part("a1", 3, Epoch, 30), 130}, // again
		{b, part("plain", 0, Epoch, 1000), 1130},
		{a, part("a2", 4, Epoch+10, 1), 1131},
		{b, part("b1", 2, Epoch, 200), 1231},
		{a, part("a3", 5, Epoch+40, 1), 1232},
		{a, part("a3", 6, Epoch+40, 2), 1233},
		{a, part("a4", 7, Epoch+3600, 1), 1234},
	} {
		testkit.OK(t, c.by.Add(t.Context(), []archive.Part{c.part}))
		want(c.total)
	}
	testkit.OK(t, a.RollUp(t.Context(), time.Unix(Epoch+24*3600, 0)))
	want(1234)
}

// Denials of all instances are in the finest slots, and in the coarser ones the newest of
// each client, so that one that is denied all the time leaves room for the others.
func testDenials(t *testing.T, open Open) {
	a, b := open(t)
	for i := range int64(30) {
		for who, store := range []archive.Store{a, b} {
			at := archive.Instant(Epoch+10*i) * 1e6
			f := &archive.Frame{Denials: []archive.Denial{
				{At: at + 1, Rule: "api", Key: fmt.Sprint("user:", i), Path: "/items/{id}", Instance: fmt.Sprint(who)},
				{At: at, Rule: "api", Key: "user:loud", Instance: fmt.Sprint(who)},
			}}
			p := Part(archive.Top, Epoch+10*i, fmt.Sprint(who, ".", i), f)
			p.Revision = 1
			testkit.OK(t, store.Add(t.Context(), []archive.Part{p}))
		}
	}
	want := func() {
		t.Helper()
		for level := range 3 {
			var loud, others int
			newest := archive.Instant(0)
			for _, s := range testkit.Must(b.Read(t.Context(), archive.Top, level, Epoch-3600, Epoch+3600))(t) {
				for _, d := range s.Frame.Denials {
					if d.Key != "user:loud" {
						others++
						continue
					}
					loud++
					newest = max(newest, d.At)
				}
			}
			slots := 30
			if level > 0 {
				slots = 2 // Epoch is in the middle of one
			}
			if others != 60 || loud == 0 || loud > slots*archive.MaxDenialsKey || newest != (Epoch+290)*1e6 {
				t.Errorf("level %d: %d of others and %d, until %d", level, others, loud, newest)
			}
		}
	}
	want()
	testkit.OK(t, a.RollUp(t.Context(), time.Unix(Epoch+24*3600, 0)))
	want()
}

// One instance leads, and continues to lead.
func testLead(t *testing.T, open Open) {
	a, b := open(t)
	for _, c := range []struct {
		who  archive.Store
		want bool
	}{{a, true}, {b, a == b}, {a, true}} {
		if leads, err := c.who.Lead(t.Context(), "alerts", time.Minute); err != nil || leads != c.want {
			t.Errorf("Lead = %v, %v, want %v", leads, err, c.want)
		}
	}
}

// At returns the time that many seconds after Epoch.
func At(seconds int64) time.Time { return time.Unix(Epoch+seconds, 0).UTC() }

// Say returns a note. Without words it ends the note with the same id.
func Say(id, words string, until int64) archive.Note {
	return archive.Note{ID: id, Text: []byte(words), Until: At(until)}
}

// Heard returns all notes as one line of text.
func Heard(t testing.TB, a archive.Store, now int64) string {
	t.Helper()
	all := testkit.Must(a.Notes(t.Context(), "test", At(now)))(t)
	words := []string{}
	for _, n := range all {
		words = append(words, fmt.Sprintf("%q=%q@%d", n.ID, n.Text, n.Until.Unix()-Epoch))
	}
	return strings.Join(words, " ")
}

func testNotes(t *testing.T, open Open) {
	a, _ := open(t)
	set := func(now int64, n archive.Note) {
		t.Helper()
		testkit.OK(t, a.SetNote(t.Context(), "test", n, At(now)))
	}
	offer := func(now int64, n, was archive.Note) {
		t.Helper()
		testkit.OK(t, a.OfferNote(t.Context(), "test", n, was, At(now)))
	}
	want := func(now int64, want string) {
		t.Helper()
		if got := Heard(t, a, now); got != want {
			t.Errorf("at %d: %s, want %s", now, got, want)
		}
	}
	want(0, "")
	set(0, Say("a", "one\n\x00\xff", 10))
	set(0, Say("\xff", "two", 100))
	testkit.OK(t, a.SetNote(t.Context(), "other", Say("a", "of another kind", 20), At(0)))
	want(9, `"a"="one\n\x00\xff"@10 "\xff"="two"@100`)
	want(10, `"\xff"="two"@100`)

	set(11, Say("a", "three", 30))
	set(12, Say("a", "", 0)) // it is remembered until its time
	want(29, `"a"=""@30 "\xff"="two"@100`)
	want(30, `"\xff"="two"@100`)
	set(31, Say("a", "four", 35))
	want(31, `"a"="four"@35 "\xff"="two"@100`)
	set(32, Say("a", "its time has passed", 32))
	want(32, `"a"=""@35 "\xff"="two"@100`)
	set(32, Say("nothing", "", 0))
	set(32, Say("lost", "", 34))
	want(32, `"a"=""@35 "lost"=""@34 "\xff"="two"@100`)

	offer(36, Say("a", "five", 80), archive.Note{}) // there is none any more
	want(36, `"a"="five"@80 "\xff"="two"@100`)
	offer(36, Say("a", "not heard", 90), archive.Note{})
	offer(36, Say("a", "not heard", 90), Say("a", "five", 81))
	offer(36, Say("a", "not heard", 90), Say("a", "fiv", 80))
	offer(36, Say("a", "", 90), Say("a", "four", 35))
	want(36, `"a"="five"@80 "\xff"="two"@100`)
	offer(36, Say("a", "six", 81), Say("a", "five", 80))
	want(36, `"a"="six"@81 "\xff"="two"@100`)
	offer(36, Say("a", "", 0), Say("a", "six", 81))
	want(36, `"a"=""@81 "\xff"="two"@100`)
	offer(36, Say("a", "seven", 90), Say("a", "", 81))
	want(36, `"a"="seven"@90 "\xff"="two"@100`)
}

// There are so many and no more; ended ones make room, and are forgotten when they are
// too many themselves, the next to pass first.
func testNotesAreBounded(t *testing.T, open Open) {
	a, _ := open(t)
	set := func(n archive.Note) error { return a.SetNote(t.Context(), "test", n, At(0)) }
	for i := range archive.MaxNotes {
		testkit.OK(t, set(Say(fmt.Sprint(i), "x", int64(1000+i))))
	}
	if err := set(Say("more", "x", 10)); !errors.Is(err, archive.ErrNoRoom) {
		t.Errorf("one more: %v", err)
	}
	if err := a.OfferNote(t.Context(), "test", Say("more", "x", 10), archive.Note{}, At(0)); !errors.Is(err, archive.ErrNoRoom) {
		t.Errorf("one more is offered: %v", err)
	}
	if err := errors.Join(set(Say("7", "y", 10)), set(Say("8", "", 0)), set(Say("more", "x", 10))); err != nil {
		t.Error(err)
	}
	if err := set(Say("8", "x", 10)); !errors.Is(err, archive.ErrNoRoom) {
		t.Errorf("one that was ended is back: %v", err)
	}
	for i := range 3 * archive.MaxNotes {
		testkit.OK(t, set(Say(fmt.Sprint("gone", i), "", int64(5000-i))))
	}
	all, err := a.Notes(t.Context(), "test", At(0))
	if err != nil || len(all) != 2*archive.MaxNotes {
		t.Fatalf("%d notes, %v", len(all), err)
	}
	text := Heard(t, a, 0)
	if !strings.Contains(text, `"gone0"`) || !strings.Contains(text, `"gone98"`) || strings.Contains(text, `"gone99"`) || !strings.Contains(text, `"gone299"`) || strings.Contains(text, `"8"=`) {
		t.Error(text)
	}

	long := strings.Repeat("x", archive.MaxNoteText+1)
	for what, err := range map[string]error{
		"a long text": set(Say("7", long, 10)), "a long id": set(Say(long[:archive.MaxNoteID+1], "x", 10)),
		"no id": set(Say("", "x", 10)), "two years": set(Say("7", "x", 2*366*24*3600)),
		"no kind":     a.SetNote(t.Context(), "", Say("7", "x", 10), At(0)),
		"a long kind": a.SetNote(t.Context(), long[:100], Say("7", "x", 10), At(0)),
	} {
		if err == nil || errors.Is(err, archive.ErrNoRoom) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := set(Say("7", long[1:], 366*24*3600)); err != nil {
		t.Error(err)
	}
}
