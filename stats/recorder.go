// Package stats remembers what happened: how many requests, how they were judged, how
// long it took, who came most often, and which limits would have been enough.
//
//	a, err := memory.New(memory.Options{}) // of stats/archive/memory
//	r, err := stats.New(stats.Options{Archive: a})
//	e, err := engine.New(engine.Options{Store: store, Observers: []engine.Observer{r}})
//	e.Install(table, 1)
//	go r.Run(ctx)
//	summary, err := r.Summary(ctx, from, to)
//
// # The hot path
//
// What a rule said and how long that took are in one number, and so one atomic addition
// counts both; a request that was judged by one rule is counted by that alone. There are
// several stripes of these numbers, so that cores seldom meet. Once a second they are
// taken and added up in the background.
//
// What is left, who came and how much of a limit was in use, is copied into a small
// buffer. When there is more than it holds, only one in 2, 4, 8 … is copied, chosen by
// chance, and counts as many.
//
// # What is lost
//
// A process that is killed takes the current second along; of rankings, details and
// suggestions the current ten seconds. While Redis is unavailable, [Options.MaxPending] is kept
// and sent afterwards; what is older is dropped, and [Recorder.Health] says how much.
package stats

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
	archivememory "github.com/weirhq/weir/stats/archive/memory"
	"github.com/weirhq/weir/stats/frame"
)

// Recorder counts verdicts and answers what happened. It is safe for concurrent use.
type Recorder struct {
	options Options
	archive archive.Store
	own     *archivememory.Store // what this instance has counted, if others share the archive

	index      atomic.Pointer[index]
	table      *rule.Table   // that index is of; guarded by collector.mu
	demanded   []*rule.Entry // likewise
	stripes    []stripe
	stripeMask uint64
	requests   *line // those that no rule's line counts alone
	routes     routes

	collector   collector
	queue       queue
	sending     sync.Mutex // held by who sends, so that nothing is sent twice at once
	subscribers subscribers

	running atomic.Bool
	name    string // tells what this process has counted from others
}

// New returns a recorder that knows no rules yet.
func New(o Options) (*Recorder, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Recorder{options: o, archive: o.Archive, name: rand.Text()[:13]}
	if o.Archive.Lag() > 0 {
		if r.own, err = archivememory.New(archivememory.Options{Keep: ownKept}); err != nil {
			return nil, err
		}
	}
	r.stripes = newStripes()
	r.stripeMask = uint64(len(r.stripes) - 1)
	r.requests = newLine(frame.Line{}, len(r.stripes))
	r.collector.reset(o.Clock())
	r.Install(nil, 0)
	r.routes.most, r.routes.known = o.MaxRoutes, map[string]bool{}
	r.queue.signal = make(chan struct{}, 1)
	r.queue.most = int64(o.MaxPending / time.Second)
	r.subscribers.most, r.subscribers.all = o.MaxSubscribers, map[*Subscription]struct{}{}
	return r, nil
}

// Install implements [engine.RuleObserver]. What rules say that are not known here is
// counted as "(other)". A rule that keeps its id goes on counting.
func (r *Recorder) Install(table *rule.Table, _ int64) {
	r.collector.mu.Lock()
	defer r.collector.mu.Unlock()
	r.table = table
	r.installLocked()
}

// InstallDemands implements [engine.RuleObserver]. The rules have what room MaxRules
// leaves, in the given order; several may have one id.
func (r *Recorder) InstallDemands(rules []*rule.Entry) {
	r.collector.mu.Lock()
	defer r.collector.mu.Unlock()
	r.demanded = rules
	r.installLocked()
}

// Counts reports whether there is a rule in force with this id that is counted apart;
// "(other)" is.
func (r *Recorder) Counts(id string) bool {
	return slices.ContainsFunc(r.index.Load().rules, func(p *place) bool { return p.id == id })
}

func (r *Recorder) installLocked() {
	c := &r.collector
	if len(c.lines) > maxLines { // not of the rules that are still in force
		maps.DeleteFunc(c.lines, func(_ frame.Line, l *line) bool { return l.left != 0 && !l.used() })
	}
	for _, l := range c.lines {
		if l.left == 0 {
			l.left = c.second
		}
	}
	x := newIndex(r.table, r.demanded, r.index.Load(), r.options.MaxRules, func(l frame.Line) *line {
		found := c.lines[l]
		if found == nil {
			found = newLine(l, len(r.stripes))
			c.lines[l] = found
		}
		found.left = 0
		return found
	})
	r.index.Store(x)
	r.takeSamplesLocked(x)
}

// look is how often samples are taken from the stripes. It divides the second.
const look = 250 * time.Millisecond

// last is how long sending what is left may take at the end.
const last = 2 * time.Second

// Run adds up, sends and rolls up until the context ends, and then sends what is left.
// Without it, stripes fill up and nothing is kept. It is to be called once.
func (r *Recorder) Run(ctx context.Context) error {
	if r.running.Swap(true) {
		return errors.New("stats: it runs already; Run is to be called once")
	}
	var sender sync.WaitGroup
	sender.Go(func() { r.send(ctx) })
	timer := time.NewTimer(r.untilLook())
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-timer.C:
			r.tick(r.options.Clock())
			timer.Reset(r.untilLook())
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

// untilLook is when to look next: at the same fractions of a second everywhere, so
// that a second's requests are counted as that second's.
func (r *Recorder) untilLook() time.Duration {
	passed := time.Duration(r.options.Clock().Nanosecond()) % look
	return max(look-passed, time.Millisecond)
}

// Flush sends everything that was counted until now, also of the current second, and
// rolls it up. Run does it at the end; whoever calls it otherwise wants to read at once
// what was written.
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

// Health is how the recorder itself fares.
type Health struct {
	Pending  int       // parts that wait to be sent
	Lost     int64     // requests that were counted and dropped, because the archive was unavailable for too long
	Dropped  int64     // requests that found no room and are in no ranking or suggestion
	Sampling int64     // rankings and suggestions take one request in so many
	Away     time.Time // since when the archive cannot be written to; zero if it can
	Err      error     // why
}

// Health returns how the recorder fares.
func (r *Recorder) Health() Health {
	h := r.queue.health()
	c := &r.collector
	c.mu.Lock()
	defer c.mu.Unlock()
	h.Dropped, h.Sampling = c.dropped, c.sampling
	return h
}

// Archive is where everything is kept, which other instances may share.
func (r *Recorder) Archive() archive.Store { return r.archive }
