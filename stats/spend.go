package stats

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/stats/archive"
)

// ObserveSpend implements [engine.SpendObserver].
func (r *Recorder) ObserveSpend(s engine.Spend) {
	rule := r.index.Load().nameOf(s.Rule)
	one := archive.Spent{Requests: 1, Units: s.Units, Input: s.Tokens.Input, Output: s.Tokens.Output}
	switch {
	case s.More:
		one.Requests = 0
	case s.Units < 0:
		one.Requests, one.Refunds = 0, 1
	}
	r.events.count(func(f *archive.Frame) {
		f.Spender(archive.Spender{Rule: rule, Level: s.Level, Currency: s.Currency, Key: s.Key, Model: s.Model}).Add(&one)
	})
}

// spend is what was spent in a minute. It is sent every second in which it has changed, each time with everything so far, so
// that it stays one part.
type spend struct {
	minute int64
	draft
	frame archive.Frame
}

// add takes what was spent out of the events of a second. What is in the frame then belongs to the minute of that second.
func (s *spend) add(second int64, events *archive.Frame) {
	if len(events.Spend) == 0 {
		return
	}
	if minute := second / 60; s.minute != minute {
		*s = spend{minute: minute}
	}
	s.frame.Merge(&archive.Frame{Spend: events.Spend})
	s.frame.Trim()
	s.changed, events.Spend = true, nil
}

func (r *Recorder) closeSpendLocked() {
	s := &r.collector.spend
	r.reviseLocked(&s.draft, archive.Spend, s.minute*60, func() *archive.Frame { return &s.frame })
}

// MaxSpending is the maximum number of lines of a report of what was spent.
const MaxSpending = 10_000

// SpendQuery selects what was spent on some days.
type SpendQuery struct {
	From, To time.Time // the days, in UTC, in which they are
	Rule     string    // or "" for all rules

	// ByClient, ByModel and ByDay tell which lines there are for each rule, level and currency. Without any, there is one.
	ByClient, ByModel, ByDay bool

	N int // number of lines for each rule, level and currency; default 1000, at most MaxSpending. The others are one line more
}

// Spending is what was spent on some days. Sums are exact: what has no line of its own is in one for the others.
type Spending struct {
	Range // whole days
	Kept  time.Duration
	Lines []SpendLine // by rule, level and currency, then by day, then the dearest first
}

// SpendLine is what one client, model and day cost under a rule, as far as the query tells them apart.
type SpendLine struct {
	Rule, Level   string
	Currency      string    // of the units, such as "usd"
	Client, Model string    // as far as it is ByClient and ByModel; archive.Other for those that are not counted apart
	Day           time.Time // zero unless it is ByDay, or for the others
	Others        bool      // the sum of the lines beyond the number of lines
	archive.Spent
}

// Spending returns what was spent. Days are those in UTC at which holds were settled and requests without one were charged.
func (r *Recorder) Spending(ctx context.Context, q SpendQuery) (*Spending, error) {
	if _, err := lengthOf(q.From, q.To); err != nil {
		return nil, err
	}
	if q.N = cmp.Or(q.N, 1000); q.N < 1 || q.N > MaxSpending {
		return nil, wrongQuery("%d lines cannot be listed; ask for 1 to %d", q.N, MaxSpending)
	}
	return ask(ctx, r, func(a archive.Store) (*Spending, error) {
		levels := a.Levels(archive.Spend)
		days := levels[len(levels)-1]
		now := r.options.Clock().Unix()
		from, to := max(days.Start(q.From.Unix()), days.Start(now-days.Keep+1)), min(days.Start(q.To.Unix()-1), days.Start(now))+days.Step
		from = min(from, to)
		answer := &Spending{Kept: time.Duration(days.Keep) * time.Second}
		answer.From, answer.To, answer.Step = time.Unix(from, 0).UTC(), time.Unix(to, 0).UTC(), time.Duration(days.Step)*time.Second
		sums := map[SpendLine]*archive.Spent{}
		err := eachOf(ctx, a, archive.Spend, len(levels)-1, from, to, 7, func(slot archive.Slot) {
			for s, spent := range slot.Frame.Spend {
				if q.Rule == "" || q.Rule == s.Rule {
					line := q.line(s, slot.Start)
					if sums[line] == nil {
						sums[line] = new(archive.Spent)
					}
					sums[line].Add(spent)
				}
			}
		})
		answer.Lines = q.lines(sums)
		return answer, err
	})
}

// compare orders lines by what is never added up.
func (l *SpendLine) compare(other *SpendLine) int {
	return cmp.Or(cmp.Compare(l.Rule, other.Rule), cmp.Compare(l.Level, other.Level), cmp.Compare(l.Currency, other.Currency))
}

// line is the line to which something belongs, without numbers.
func (q *SpendQuery) line(s archive.Spender, start int64) SpendLine {
	line := SpendLine{Rule: s.Rule, Level: s.Level, Currency: s.Currency}
	if q.ByClient {
		line.Client = s.Key
	}
	if q.ByModel {
		line.Model = s.Model
	}
	if q.ByDay {
		line.Day = time.Unix(start, 0).UTC()
	}
	return line
}

// lines puts sums in order, and adds up the cheapest of a rule and level that has too many.
func (q *SpendQuery) lines(sums map[SpendLine]*archive.Spent) []SpendLine {
	lines := make([]SpendLine, 0, len(sums))
	for line, sum := range sums {
		line.Spent = *sum
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b SpendLine) int {
		return cmp.Or(a.compare(&b), cmp.Compare(b.Units, a.Units), a.Day.Compare(b.Day), cmp.Compare(a.Client, b.Client), cmp.Compare(a.Model, b.Model))
	})
	kept, of := lines[:0], 0
	for _, line := range lines {
		if len(kept) == 0 || kept[len(kept)-1].compare(&line) != 0 {
			of = 0
		}
		if of++; of > q.N {
			if last := &kept[len(kept)-1]; of == q.N+1 {
				rest := q.line(archive.Spender{Rule: line.Rule, Level: line.Level, Currency: line.Currency, Key: archive.Other, Model: archive.Other}, 0)
				rest.Day, rest.Others, rest.Spent = time.Time{}, true, line.Spent
				kept = append(kept, rest)
			} else {
				last.Add(&line.Spent)
			}
			continue
		}
		kept = append(kept, line)
	}
	if q.ByDay {
		slices.SortStableFunc(kept, func(a, b SpendLine) int {
			if a.Others != b.Others && a.compare(&b) == 0 {
				return b.Day.Compare(a.Day) // the others have no day, and come last
			}
			return cmp.Or(a.compare(&b), a.Day.Compare(b.Day))
		})
	}
	return kept
}
