package archivetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/stats/archive"
)

// At returns the time that many seconds after Epoch.
func At(seconds int64) time.Time { return time.Unix(Epoch+seconds, 0).UTC() }

// Say returns a note. Without words it ends the note with the same id.
func Say(id, words string, until int64) archive.Note {
	return archive.Note{ID: id, Text: []byte(words), Until: At(until)}
}

// Heard returns all notes as one line of text.
func Heard(t testing.TB, a archive.Store, now int64) string {
	t.Helper()
	all := testcall.Must(a.Notes(t.Context(), "test", At(now)))(t)
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
		testcall.OK(t, a.SetNote(t.Context(), "test", n, At(now)))
	}
	offer := func(now int64, n, was archive.Note) {
		t.Helper()
		testcall.OK(t, a.OfferNote(t.Context(), "test", n, was, At(now)))
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
	testcall.OK(t, a.SetNote(t.Context(), "other", Say("a", "of another kind", 20), At(0)))
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
		testcall.OK(t, set(Say(fmt.Sprint(i), "x", int64(1000+i))))
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
		testcall.OK(t, set(Say(fmt.Sprint("gone", i), "", int64(5000-i))))
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
