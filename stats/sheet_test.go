package stats

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/stats/archive"
)

// A sheet counts what a histogram does, however long things take and however often it
// is emptied.
func TestSheetIsAHistogram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s sheet
		var got, want archive.Histogram
		for range rapid.IntRange(1, 200).Draw(t, "n") {
			took := time.Duration(rapid.OneOf(
				rapid.Int64Range(0, 3000), rapid.Int64Range(long-2, long+2), rapid.Int64Range(0, int64(time.Hour)),
			).Draw(t, "took"))
			s.add(archive.DurationSlot(took), took)
			want.Record(took)
			if rapid.IntRange(0, 20).Draw(t, "take") == 0 {
				s.take(&got)
			}
		}
		s.take(&got)
		if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); a != b {
			t.Fatalf("%s, want %s", a, b)
		}
	})
}

// Nothing is lost if nothing is collected for so long that a slot is full.
func TestSheetSpills(t *testing.T) {
	for name, full := range map[string]uint64{
		"number": 1<<63 - 2<<sumBits | 700,
		"time":   5<<sumBits | 1<<(sumBits-1) - 100,
	} {
		var s sheet
		var got archive.Histogram
		s.slots[7].Store(full)
		for range 10 {
			s.add(7, 60)
		}
		if now := s.slots[7].Load(); now&nearlyFull != 0 {
			t.Errorf("%s: the slot has %x", name, now)
		}
		s.take(&got)
		if count, sum := int64(full>>sumBits)+10, int64(full&sumMask)+600; got.Count != count || got.Sum != sum {
			t.Errorf("%s: %d of %d ns, want %d of %d", name, got.Count, got.Sum, count, sum)
		}
		s.take(&got)
		if got.Count != int64(full>>sumBits)+10 {
			t.Errorf("%s: it was taken twice", name)
		}
	}
}

// Rules that come and go leave no lines behind, and one that comes back goes on.
func TestLinesAreBounded(t *testing.T) {
	d := newDesk(t, "rules: [{id: api, key: user, limit: 9/1h}]")
	d.check(t, alice, 1)
	before := len(d.collector.lines)
	replace := func(i int) {
		d.install(t, fmt.Sprintf("rules: [{id: r%d, key: user, limit: 9/1h, tiers: {pro: 10/1h}}]", i))
	}
	for i := range 100 {
		replace(i)
		d.check(t, alice, 1)
		d.pass(1)
		if n := len(d.collector.lines); n > before+3*(remembered+2) {
			t.Fatalf("%d lines after %d installations, %d at first", n, i, before)
		}
	}
	for i := range maxLines / 100 { // within a second
		text := "rules:"
		for n := range 100 {
			text += fmt.Sprintf("\n  - {id: r%d-%d, key: user, limit: %d/1h}", i, n, 9+n)
		}
		d.install(t, text)
		if n := len(d.collector.lines); n > maxLines+2*201 {
			t.Fatalf("%d lines after %d installations", n, i)
		}
	}
	d.install(t, "rules: [{id: api, key: user, limit: 9/1h}]")
	d.check(t, alice, 1)
	d.pass(2 * remembered)
	if n := len(d.collector.lines); n != before {
		t.Errorf("%d lines are left, %d at first", n, before)
	}
	if s := d.summary(t); s.Counts.Total() != 102 {
		t.Errorf("%+v", s.Counts)
	}
}

// Who is held up between finding a line and counting there, while the rule goes out of
// force, is counted all the same.
func TestLateCount(t *testing.T) {
	d := newDesk(t, "rules: [{id: api, key: user, limit: 9/1h}]")
	table, _ := d.engine.Rules()
	l := d.index.Load().Find(table.Rules()[0]).lines[0]
	d.install(t, "rules: [{id: other, key: user, limit: 9/1h}]")
	d.pass(remembered - 1)
	l.sheet(0, alone, engine.OutcomeDenied).add(1, 20)
	d.pass(1)
	if s := d.summary(t); s.Counts.Denied != 1 || len(s.Rules) != 1 || s.Rules[0].Rule != "api" {
		t.Errorf("%+v, %+v", s.Counts, s.Rules)
	}
}

// A time that is taken before it is counted is not lost: it waits for its count.
func TestTimeWithoutACount(t *testing.T) {
	d := newDesk(t, "rules: [{id: api, key: user, limit: 9/1h}]")
	table, _ := d.engine.Rules()
	s := d.index.Load().Find(table.Rules()[0]).lines[0].sheet(0, alone, engine.OutcomeAllowed)
	s.long.Add(int64(time.Millisecond)) // the first half of add
	d.pass(1)
	s.add(archive.DurationSlot(time.Millisecond), 0) // and the second
	d.pass(1)
	if got := d.summary(t).Decision; got.Count != 1 || got.Mean != time.Millisecond {
		t.Errorf("%+v", got)
	}
}

// Lines of rules in force are never given up, however many there are.
func TestLinesInForceStay(t *testing.T) {
	d := newDesk(t, "rules: [{id: api, key: user, limit: 9/1h}]")
	table, _ := d.engine.Rules()
	l := d.index.Load().Find(table.Rules()[0]).lines[0]
	for i := range maxLines {
		name := archive.Line{Rule: fmt.Sprint("gone", i)}
		gone := newLine(name, len(d.stripes))
		gone.left = d.collector.second
		d.collector.lines[name] = gone
	}
	d.install(t, "rules: [{id: other, key: user, limit: 9/1h}]")
	l.sheet(0, alone, engine.OutcomeDenied).add(1, 20) // by who was just about to
	if s := d.summary(t); s.Counts.Denied != 1 || len(d.collector.lines) > 10 {
		t.Errorf("%+v, %d lines", s.Counts, len(d.collector.lines))
	}
}
