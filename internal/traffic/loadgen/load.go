// Package loadgen generates load with a closed loop of callers, and measures rate and
// latency: each caller calls, waits for the answer, and calls again.
//
// So the load adapts itself to what the subject can do. That shows its capacity, and
// how long answers take with this many callers. It does not show what happens to
// callers who come no matter whether the others have been served.
package loadgen

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/estimate"
)

// Options of a run.
type Options struct {
	// Workers is how many callers there are. Default 1.
	Workers int

	// Duration is for how long calls are begun. Default 10 s.
	Duration time.Duration

	// Count is how many calls are begun at most. Default any number.
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

// run is a run under way.
type run struct {
	Options
	start       time.Time
	begun, done atomic.Int64
}

// Run makes calls until the time is over, all have been made, or the context ends,
// which also ends the calls that are under way.
func Run(ctx context.Context, o Options) *Report {
	o.Workers, o.Count = cmp.Or(o.Workers, 1), cmp.Or(o.Count, math.MaxInt64)
	o.Duration, o.Grace = cmp.Or(o.Duration, 10*time.Second), cmp.Or(o.Grace, time.Second)
	r := &run{Options: o, start: time.Now()}
	calls, cut := context.WithCancel(ctx) // what calls are made with
	defer cut()
	begin, over := context.WithTimeout(ctx, r.Duration) // as long as calls may begin
	defer over()

	counted := make([]Report, r.Workers)
	var workers sync.WaitGroup
	for i := range counted {
		counted[i].Outcomes = map[string]int64{}
		workers.Go(func() { r.work(begin, calls, i, &counted[i]) })
	}
	finished := make(chan struct{})
	go func() {
		workers.Wait()
		close(finished)
	}()
	r.follow(begin, finished, cut)

	report := &Report{Elapsed: time.Since(r.start), Outcomes: map[string]int64{}}
	for i := range counted {
		report.addWorker(&counted[i])
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
func (r *run) work(begin, calls context.Context, worker int, counted *Report) {
	for begin.Err() == nil && r.begun.Add(1) <= r.Count {
		start := time.Now()
		outcome, err := r.Do(calls, worker)
		took := time.Since(start)
		switch {
		case err == nil:
			counted.count(outcome, 1)
			counted.Latency.Record(took)
		case calls.Err() != nil:
			counted.Unfinished++
			return
		default:
			counted.Errors++
			counted.remember(err.Error())
			_ = clock.Sleep(begin, rest)
		}
		r.done.Add(1)
	}
}

// Bounds on what a report remembers, whatever the subject answers.
const (
	maxOutcomes = 32
	maxTexts    = 5
	maxText     = 300 // bytes
)

// Other is the outcome of calls that ended in more ways than a report remembers.
const Other = "other"

// Report is how a run went.
type Report struct {
	Elapsed time.Duration

	// Answered is how many calls ended without an error, and Outcomes in which ways.
	Answered int64
	Outcomes map[string]int64

	// Errors is how many calls ended with one, and Texts are the first few that
	// differ.
	Errors int64
	Texts  []string

	// Unfinished is how many calls were cut off at the end. If there are many, the
	// latencies look better than they were.
	Unfinished int64

	// Latency is how long the calls took that were answered.
	Latency Histogram
}

// Rate is how many calls were answered in a second.
func (r *Report) Rate() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Answered) / r.Elapsed.Seconds()
}

// addWorker takes over what a worker has counted, by itself, so that none waits for another.
func (r *Report) addWorker(worker *Report) {
	for outcome, n := range worker.Outcomes {
		r.count(outcome, n)
	}
	for _, text := range worker.Texts {
		r.remember(text)
	}
	r.Errors += worker.Errors
	r.Unfinished += worker.Unfinished
	r.Latency.Merge(&worker.Latency)
}

// count adds answers to an outcome, or to the others if there are too many.
func (r *Report) count(outcome string, n int64) {
	if _, known := r.Outcomes[outcome]; !known && len(r.Outcomes) >= maxOutcomes {
		outcome = Other
	}
	r.Outcomes[outcome] += n
	r.Answered += n
}

// remember keeps the first few texts that differ.
func (r *Report) remember(text string) {
	text = text[:min(len(text), maxText)]
	if len(r.Texts) < maxTexts && !slices.Contains(r.Texts, text) {
		r.Texts = append(r.Texts, text)
	}
}

// A histogram has slots as wide as their value is large: each power of two is divided
// into 128, so that a slot is less than 1 % of what is in it. Nanoseconds below 128
// have a slot each, and what is above the last one, 18 minutes, counts as that.
const (
	fine  = 7
	slots = (40 - fine + 1) << fine
)

// Histogram counts lengths of time, in 34 KiB however many there are. A quantile is
// less than 1 % off, the maximum is exact. The zero value is empty; it is not safe
// for concurrent use.
type Histogram struct {
	counts [slots]int64
	count  int64
	sum    time.Duration
	max    time.Duration
}

// slot returns where a length of time is counted.
func slot(d time.Duration) int {
	return int(min(estimate.Slot(uint64(max(d, 0)), fine), slots-1))
}

// top returns the longest time that is counted in a slot.
func top(slot int) time.Duration {
	bottom, width := estimate.Bottom(uint(slot), fine)
	return time.Duration(bottom + width - 1)
}

// Record counts a length of time.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	h.counts[slot(d)]++
	h.count++
	h.sum += d
	h.max = max(h.max, d)
}

// Merge adds what another histogram has counted.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.count += other.count
	h.sum += other.sum
	h.max = max(h.max, other.max)
}

// Count is how many there are.
func (h *Histogram) Count() int64 { return h.count }

// Max is the longest, 0 if there is none.
func (h *Histogram) Max() time.Duration { return h.max }

// Mean is the average, 0 if there is none.
func (h *Histogram) Mean() time.Duration {
	if h.count == 0 {
		return 0
	}
	return h.sum / time.Duration(h.count)
}

// Quantile returns the time within which the fraction q of them lies, of 0 to 1: it is
// never shorter than the true one, and less than 1 % longer. It is 0 if there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := max(int64(math.Ceil(q*float64(h.count))), 1)
	for i, n := range h.counts {
		if rank -= n; rank <= 0 && n > 0 {
			return min(top(i), h.max)
		}
	}
	return h.max
}

// Within returns how many took no longer than d, give or take those in its own slot.
func (h *Histogram) Within(d time.Duration) int64 {
	if d >= h.max {
		return h.count
	}
	total := int64(0)
	for i := range slot(d) + 1 {
		total += h.counts[i]
	}
	return total
}
