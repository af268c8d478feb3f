// Package loadgen generates load with a closed loop of callers, and measures rate and
// latency: each caller calls, waits for the answer, and calls again.
//
// So the load adapts itself to what the subject can do. That shows its capacity, and
// how long answers take with this many callers. It does not show what happens to
// callers who come no matter whether the others have been served.
package loadgen

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds on a run.
const (
	MaxWorkers  = 1024
	MaxDuration = time.Hour
	MaxCount    = 1_000_000_000
)

// Options of a run. Values beyond a bound are cut down to it.
type Options struct {
	// Workers is how many callers there are. Default 1, at most MaxWorkers.
	Workers int

	// Duration is for how long calls are begun. Default 10 s, at most MaxDuration.
	Duration time.Duration

	// Count is how many calls are begun. Default, and at most, MaxCount.
	Count int64

	// Grace is how long calls that were begun in time may go on afterwards. Default 1 s.
	Grace time.Duration

	// Do makes one call and returns its result in a word. An error is a call without an
	// answer; the worker then pauses briefly, because rejected connections return very
	// fast. Required.
	Do func(ctx context.Context, worker int) (outcome string, err error)

	// Progress is called with the progress of the run, a few times per second and at its
	// end. It must be fast. Default none.
	Progress func(Snapshot)
}

// Snapshot is how far a run is.
type Snapshot struct {
	Elapsed time.Duration
	Done    int64 // calls that ended, with errors
	Part    float64
}

const (
	rest  = 10 * time.Millisecond  // after an error
	watch = 100 * time.Millisecond // between two snapshots
)

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, fallback time.Duration) {
		if *d <= 0 {
			*d = fallback
		}
	}
	set(&o.Duration, 10*time.Second)
	set(&o.Grace, time.Second)
	o.Duration = min(o.Duration, MaxDuration)
	o.Workers = min(max(o.Workers, 1), MaxWorkers)
	if o.Count <= 0 || o.Count > MaxCount {
		o.Count = MaxCount
	}
	return o
}

// run is a run under way.
type run struct {
	Options
	start       time.Time
	begun, done atomic.Int64
}

// Run makes calls until the time is over, all have been made, or the context ends,
// which also ends the calls that are under way.
func Run(ctx context.Context, o Options) *Report {
	r := &run{Options: o.withDefaults(), start: time.Now()}
	calls, cut := context.WithCancel(ctx) // what calls are made with
	defer cut()
	begin, over := context.WithTimeout(ctx, r.Duration) // as long as calls may begin
	defer over()

	tallies := make([]tally, r.Workers)
	var workers sync.WaitGroup
	for i := range tallies {
		workers.Go(func() { r.work(begin, calls, i, &tallies[i]) })
	}
	finished := make(chan struct{})
	go func() {
		workers.Wait()
		close(finished)
	}()
	r.follow(begin, finished, cut)

	report := &Report{Elapsed: time.Since(r.start)}
	for i := range tallies {
		report.add(&tallies[i])
	}
	r.tell()
	return report
}

// follow reports progress until all workers are finished, and makes those finish that
// take longer than they may.
func (r *run) follow(begin context.Context, finished <-chan struct{}, cut func()) {
	ticks := time.NewTicker(watch)
	defer ticks.Stop()
	over := begin.Done()
	for {
		select {
		case <-ticks.C:
			r.tell()
		case <-over:
			over = nil
			defer time.AfterFunc(r.Grace, cut).Stop()
		case <-finished:
			return
		}
	}
}

func (r *run) tell() {
	if r.Progress == nil {
		return
	}
	s := Snapshot{Elapsed: time.Since(r.start), Done: r.done.Load()}
	s.Part = min(max(float64(s.Elapsed)/float64(r.Duration), float64(s.Done)/float64(r.Count)), 1)
	r.Progress(s)
}

// work is what one worker does.
func (r *run) work(begin, calls context.Context, worker int, t *tally) {
	for begin.Err() == nil && r.begun.Add(1) <= r.Count {
		start := time.Now()
		outcome, err := r.Do(calls, worker)
		took := time.Since(start)
		switch {
		case err == nil:
			t.answered(outcome, took)
		case calls.Err() != nil:
			t.unfinished++
			return
		default:
			t.failed(err)
			pause(begin)
		}
		r.done.Add(1)
	}
}

func pause(ctx context.Context) {
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
