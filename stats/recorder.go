// Package stats records traffic: the number of requests, their outcomes, how long
// decisions took, the most frequent clients, and which limits would have been enough.
//
//	a, err := archive.NewMemory(archive.Keep{})
//	r, err := stats.New(stats.Options{Archive: a})
//	e, err := engine.New(engine.Options{Store: store, Observers: []engine.Observer{r}})
//	e.Install(table, 1)
//	go r.Run(ctx)
//	summary, err := r.Summary(ctx, from, to)
//
// # The hot path
//
// One number holds both the outcome of a rule and the duration of the decision, so one
// atomic addition counts both. A request to which one rule applies needs no other
// addition. There are several stripes of these numbers, so that cores rarely contend. A
// background goroutine collects them once a second.
//
// Keys, and how much of a limit was in use, are copied into a small buffer. When the
// buffer overflows, only one request in 2, 4, 8 … is copied, chosen at random, and
// counts for as many.
//
// # Data loss
//
// A process that is killed loses the current second; of details and suggestions it loses
// the current ten seconds. While Redis is unavailable, up to
// [Options.MaxPending] is buffered and sent later. Older data is dropped, and
// [Recorder.Health] reports how much.
package stats

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/tally"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// Recorder records verdicts and answers queries. It is safe for concurrent use.
type Recorder struct {
	options Options
	archive archive.Store
	own     *archive.Memory // what this instance has counted, if others share the archive

	index      atomic.Pointer[index]
	table      *rule.Table   // that index is of; guarded by collector.mu
	demanded   []*rule.Entry // likewise
	stripes    []stripe
	stripeMask uint64
	many       chan struct{} // a stripe has many samples
	requests   *line         // those that no rule's line counts alone
	routes     tally.Names
	events     events
	flights    sync.Map  // by rule, of *flights
	born       time.Time // from which flights measure time

	collector   collector
	queue       queue
	sending     sync.Mutex // held by who sends, so that nothing is sent twice at once
	subscribers subscribers

	running atomic.Bool
	name    string // tells what this process has counted from others
}

// New returns a recorder without rules.
func New(o Options) (*Recorder, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Recorder{options: o, archive: o.Archive, name: rand.Text()[:13], born: o.Clock()}
	if o.Archive.Lag() > 0 {
		if r.own, err = archive.NewMemory(ownKept); err != nil {
			return nil, err
		}
	}
	r.many = make(chan struct{}, 1)
	r.stripes = newStripes(r.many)
	r.stripeMask = uint64(len(r.stripes) - 1)
	r.requests = newLine(archive.Line{}, len(r.stripes))
	r.collector.reset(o.Clock())
	r.Install(nil, 0)
	r.routes.Max = o.MaxRoutes
	r.queue.signal = make(chan struct{}, 1)
	r.queue.most = int64(o.MaxPending / time.Second)
	r.subscribers.most, r.subscribers.all = o.MaxSubscribers, map[*Subscription]struct{}{}
	return r, nil
}

// Install implements [engine.RuleObserver]. Results of rules that are not installed are
// counted as "(other)". A rule that keeps its id keeps its counts.
func (r *Recorder) Install(table *rule.Table, _ int64) {
	r.collector.mu.Lock()
	defer r.collector.mu.Unlock()
	r.table = table
	r.installLocked()
}

// InstallDemands implements [engine.RuleObserver]. These rules share the room that
// MaxRules leaves, in the given order; several of them may have the same id.
func (r *Recorder) InstallDemands(rules []*rule.Entry) {
	r.collector.mu.Lock()
	defer r.collector.mu.Unlock()
	r.demanded = rules
	r.installLocked()
}

// Counts reports whether a rule with this id is in force and counted separately. It is
// true for "(other)".
func (r *Recorder) Counts(id string) bool {
	_, own := r.index.Load().ByID(id)
	return own || id == archive.Other
}

// Listed reports whether a client is on the exempt or the block list of the installed rules, as
// [rule.Table.Listed] does.
func (r *Recorder) Listed(key string) bool {
	lists := r.index.Load().lists
	return lists != nil && lists.Listed(key)
}

func (r *Recorder) installLocked() {
	c := &r.collector
	if len(c.lines) > maxLines { // not of the rules that are still in force
		maps.DeleteFunc(c.lines, func(_ archive.Line, l *line) bool { return l.left != 0 && !l.used() })
	}
	for _, l := range c.lines {
		if l.left == 0 {
			l.left = c.second
		}
	}
	x := newIndex(r.table, r.demanded, r.index.Load(), r.options.MaxRules, func(l archive.Line) *line {
		found := c.lines[l]
		if found == nil {
			found = newLine(l, len(r.stripes))
			c.lines[l] = found
		}
		found.left = 0
		return found
	})
	if last := r.index.Swap(x); last != nil {
		c.takeLevels(last)
	}
	r.takeSamplesLocked(x)
}

// Samples are taken from the stripes at the end of every second, and every look as long
// as there are many. It divides the second.
const look = 250 * time.Millisecond

// last is how long sending what is left may take at the end.
const last = 2 * time.Second

// Run aggregates, sends and rolls up data until the context ends, and then sends the
// rest. Without it, nothing is stored. Call it once.
func (r *Recorder) Run(ctx context.Context) error {
	if r.running.Swap(true) {
		return errors.New("stats: the recorder already runs; call Run once")
	}
	var sender sync.WaitGroup
	sender.Go(func() { r.send(ctx) })
	timer := time.NewTimer(r.until(look))
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-timer.C:
			timer.Reset(r.until(r.tick(r.options.Clock())))
		case <-r.many:
			timer.Reset(r.until(look))
		case <-ctx.Done():
		}
	}
	sender.Wait()
	final, cancel := context.WithTimeout(context.WithoutCancel(ctx), last)
	defer cancel()
	err := r.Flush(final)
	r.subscribers.close()
	return err
}

// until is when to look next: at the same fractions of a second everywhere, so that a
// second's requests are counted as that second's.
func (r *Recorder) until(d time.Duration) time.Duration {
	return clock.UntilWhole(r.options.Clock(), d)
}

// Flush sends everything counted so far, including the current second, and rolls it up.
// Run calls it at the end; call it to read immediately what was written.
func (r *Recorder) Flush(ctx context.Context) error {
	r.sending.Lock()
	defer r.sending.Unlock()
	now := r.options.Clock()
	r.close(now)
	for {
		batch := r.queue.first()
		if len(batch) == 0 {
			return r.archive.RollUp(ctx, now)
		}
		if err := r.archive.Add(ctx, batch); err != nil {
			return err
		}
		r.queue.sent(batch)
	}
}

// Health is the state of a recorder.
type Health struct {
	Pending          int       // parts that wait to be sent
	Lost             int64     // counted requests that were dropped, because the archive was unavailable for too long
	Dropped          int64     // requests that are in no ranking or suggestion for lack of room
	Sampling         int64     // rankings and suggestions sample one request in this many
	UnavailableSince time.Time // since when the archive has been unavailable; zero if it is available
	Err              error     // the reason

	// CompleteSince, if not zero, is since when the statistics are complete: the archive has lost
	// data of the time before, such as a Redis that was restarted without it. An instance notices
	// that of an archive that it shares, within seconds, for data that it has sent itself; one that
	// is started later does not know.
	CompleteSince time.Time
}

// Health returns the state of the recorder.
func (r *Recorder) Health() Health {
	h := r.queue.health()
	c := &r.collector
	c.mu.Lock()
	defer c.mu.Unlock()
	h.Dropped, h.Sampling = c.dropped, c.sampling
	return h
}

// Archive returns the archive, which other instances may share.
func (r *Recorder) Archive() archive.Store { return r.archive }
