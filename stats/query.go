package stats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// MaxPoints is the maximum number of points in a series.
const MaxPoints = 5000

// idealPoints is the maximum number of points of a series with the default step.
const idealPoints = 400

// QueryError reports an invalid query.
type QueryError struct{ Reason string }

func (e *QueryError) Error() string { return "stats: " + e.Reason }

func wrongQuery(format string, args ...any) error {
	return &QueryError{fmt.Sprintf(format, args...)}
}

// Query selects a part of the statistics.
type Query struct {
	From, To time.Time

	// Step is the time between two points. Default 0, which selects a step with a few
	// hundred points, no finer than the data that is still kept. Other values are
	// rounded up to a multiple of the kept resolution.
	Step time.Duration

	// Rule, if not "", selects the results of one rule instead of all requests. Tier
	// then selects one tier of the rule; "(none)" for requests without a tier.
	Rule, Tier string
}

// NoTier is the Query.Tier for requests without a tier.
const NoTier = "(none)"

// Series is the traffic over time.
type Series struct {
	Range
	Points   []Point   // one for every step, even if there was no traffic
	InFlight *InFlight // of a rule, in the whole range, as in RuleSummary
}

// Series returns the traffic over time. The points of a rule contain only counts, requests in
// flight, and levels.
func (r *Recorder) Series(ctx context.Context, q Query) (*Series, error) {
	return ask(ctx, r, func(a archive.Store) (*Series, error) {
		g, err := r.plan(a, q.From, q.To, q.Step, MaxPoints)
		if err != nil {
			return nil, err
		}
		frames := make([]archive.Frame, g.points)
		err = g.each(ctx, a, archive.Series, func(s archive.Slot) {
			// Points have only a part of it, and there may be thousands.
			frames[g.at(s.Start)].Merge(partOf(s.Frame, q))
		})
		if err != nil {
			return nil, err
		}
		series := &Series{Range: g.span()}
		var total archive.Frame
		for i := range frames {
			p := pointOf(g.time(int64(i)), series.Step, &frames[i])
			if q.Rule != "" {
				p.InFlight = inFlightOf(frames[i].InFlight[q.Rule], series.Step)
				p.Levels = levelsOf(&frames[i])[q.Rule]
				total.Merge(&archive.Frame{InFlight: frames[i].InFlight})
			}
			series.Points = append(series.Points, p)
		}
		series.InFlight = inFlightOf(total.InFlight[q.Rule], series.To.Sub(series.From))
		return series, nil
	})
}

// partOf is what a point of a series is made of.
func partOf(f *archive.Frame, q Query) *archive.Frame {
	if q.Rule != "" {
		part := &archive.Frame{Requests: countsOf(f, q)}
		if in := f.InFlight[q.Rule]; in != nil && q.Tier == "" {
			part.InFlight = map[string]*archive.InFlight{q.Rule: in}
		}
		if q.Tier == "" {
			for l, denied := range f.Levels {
				if l.Rule == q.Rule {
					*part.Level(l) = *denied
				}
			}
		}
		return part
	}
	return &archive.Frame{Requests: f.Requests, Decision: f.Decision, Routes: f.Routes}
}

// countsOf is what a rule said, to all tiers or to one.
func countsOf(f *archive.Frame, q Query) archive.Counts {
	var sum archive.Counts
	for line, counts := range f.Rules {
		if line.Rule == q.Rule && (q.Tier == "" || q.Tier == cmp.Or(line.Tier, NoTier)) {
			sum.Add(*counts)
		}
	}
	return sum
}

// each reads a range piece by piece.
func each(ctx context.Context, a archive.Store, kind archive.Kind, level int, from, to int64, do func(archive.Slot)) error {
	return eachOf(ctx, a, kind, level, from, to, 500, do)
}

// eachOf is each with so many slots at a time.
func eachOf(ctx context.Context, a archive.Store, kind archive.Kind, level int, from, to, slots int64, do func(archive.Slot)) error {
	piece := slots * a.Levels(kind)[level].Step
	for ; from < to; from += piece {
		slots, err := a.Read(ctx, kind, level, from, min(to, from+piece))
		if err != nil {
			return err
		}
		for _, s := range slots {
			do(s)
		}
	}
	return nil
}

// Summary is the traffic of a time range.
type Summary struct {
	Range // without steps
	Traffic
	Decision Percentiles
	Upstream Upstream
	Routes   []Upstream    // ordered by name
	Rules    []RuleSummary // busiest first

	// Priorities are those of all requests, the most important first; nil if all requests had
	// normal priority.
	Priorities []PrioritySummary
}

// Summary adds up the traffic of a time range. Percentiles of rules cover whole slots
// of ten seconds, five minutes or an hour that overlap the range.
func (r *Recorder) Summary(ctx context.Context, from, to time.Time) (*Summary, error) {
	length, err := lengthOf(from, to)
	if err != nil {
		return nil, err
	}
	return ask(ctx, r, func(a archive.Store) (*Summary, error) {
		levels := a.Levels(archive.Series)
		level := r.finest(levels, from.Unix(), length)
		for level+1 < len(levels) && length/levels[level].Step > 4*idealPoints {
			level++
		}
		begin, end := levels[level].Start(from.Unix()), levels[level].Start(to.Unix()+levels[level].Step-1)
		sum := &archive.Frame{}
		if err := each(ctx, a, archive.Series, level, begin, end, func(s archive.Slot) { sum.Merge(s.Frame) }); err != nil {
			return nil, err
		}
		err := r.planKept(a, archive.Rules, begin, end).each(ctx, a, archive.Rules, func(s archive.Slot) {
			sum.Merge(&archive.Frame{Details: s.Frame.Details})
		})
		return summaryOf(time.Unix(begin, 0).UTC(), time.Duration(end-begin)*time.Second, sum), err
	})
}

func summaryOf(from time.Time, took time.Duration, f *archive.Frame) *Summary {
	s := &Summary{Range: Range{From: from, To: from.Add(took)}, Traffic: trafficOf(f.Requests, took), Decision: percentilesOf(&f.Decision)}
	s.Upstream, s.Routes = upstreams(f)
	s.Rules = rulesOf(f, took)
	s.Priorities = prioritiesOf(f)
	return s
}

// detail adds up what is known of one rule, from the finest level that has it.
func (g grid) detail(ctx context.Context, a archive.Store, id string) (*archive.Detail, error) {
	var sum archive.Frame
	err := g.each(ctx, a, archive.Rules, func(s archive.Slot) {
		if d := s.Frame.Details[id]; d != nil {
			sum.Merge(&archive.Frame{Details: map[string]*archive.Detail{id: d}})
		}
	})
	return sum.Detail(id), err
}

// ownKept is for how long an instance remembers what it has counted itself, beside the
// archive that it shares with others: enough for somebody who looks while that is
// unavailable.
var ownKept = archive.Keep{Second: 10 * time.Minute, Minute: 2 * time.Hour, Hour: 48 * time.Hour, Day: 24 * time.Hour}

// keepOwn keeps a part here, too.
func (r *Recorder) keepOwn(p *archive.Part) {
	if r.own == nil {
		return
	}
	if err := r.own.Add(context.Background(), []archive.Part{*p}); err != nil {
		panic(err) // the frame was written a line before
	}
}

// ask puts a question to the archive. While that is unavailable, the question is put to
// what this instance has counted itself. A question may be put twice, so it has to begin
// from nothing each time.
func ask[A interface{ setLocal() }](ctx context.Context, r *Recorder, question func(archive.Store) (A, error)) (none A, _ error) {
	if r.own == nil || r.queue.health().Err == nil { // otherwise local data needs no waiting
		answer, err := question(r.archive)
		if err == nil {
			return answer, nil
		}
		if _, wrong := errors.AsType[*QueryError](err); wrong || r.own == nil || ctx.Err() != nil {
			return none, err
		}
	}
	answer, err := question(r.own)
	if err != nil {
		return none, err
	}
	answer.setLocal()
	return answer, nil
}
