package stats

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// rollUpEvery is how often an instance rolls up, give or take a fifth: those that were
// started together should not do it together.
const rollUpEvery = 5 * time.Second

// maxBatch is how many parts are sent at once.
const maxBatch = 32

// queue is what waits to be sent.
type queue struct {
	most   int64         // seconds that a part may wait
	signal chan struct{} // that there is something to do

	mu      sync.Mutex
	waiting []waiting
	lost    int64
	over    []closed // seconds that were not told yet
	away    time.Time
	err     error
	arrived waiting   // the last part with requests that the archive has taken
	lostAt  time.Time // when it was seen that the archive has lost such a part
}

type waiting struct {
	part     *archive.Part
	requests int64
}

// closed is a second that is over, as this process has seen it.
type closed struct {
	second int64
	frame  *archive.Frame
	warned archive.Warned
}

// closed adds a second that is over.
func (q *queue) closed(over closed) {
	q.mu.Lock()
	q.over = append(q.over, over)
	q.over = q.over[max(0, len(q.over)-behind):]
	q.mu.Unlock()
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// put lets a part wait in place of an earlier revision of it, and drops those that have
// waited too long.
func (q *queue) put(p *archive.Part, requests int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.IndexFunc(q.waiting, func(w waiting) bool { return w.part.ID == p.ID }); i >= 0 {
		q.waiting[i].part = p
		return
	}
	q.waiting = append(q.waiting, waiting{p, requests})
	drop := 0
	for drop < len(q.waiting) && (q.waiting[drop].part.Start < p.Start-q.most || int64(len(q.waiting)-drop) > 2*q.most+3) {
		q.lost += q.waiting[drop].requests
		drop++
	}
	if drop > 0 {
		q.waiting = slices.Clone(q.waiting[drop:])
	}
}

// first returns what is to be sent next.
func (q *queue) first() []archive.Part {
	q.mu.Lock()
	defer q.mu.Unlock()
	var batch []archive.Part
	for _, w := range q.waiting[:min(len(q.waiting), maxBatch)] {
		batch = append(batch, *w.part)
	}
	return batch
}

// sent removes what has arrived, unless it was dropped meanwhile.
func (q *queue) sent(batch []archive.Part) {
	arrived := make(map[string]int64, len(batch))
	for i := range batch {
		arrived[batch[i].ID] = batch[i].Revision
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(w waiting) bool {
		revision, ok := arrived[w.part.ID]
		ok = ok && revision == w.part.Revision
		if ok && w.requests > 0 {
			q.arrived = w
		}
		return ok
	})
}

// take returns the seconds that were not told yet.
func (q *queue) take() []closed {
	q.mu.Lock()
	defer q.mu.Unlock()
	over := q.over
	q.over = nil
	return over
}

// report notes whether the archive could be written to, and says whether that is news.
func (q *queue) report(now time.Time, err error) (news bool, away time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	news = (err == nil) != (q.err == nil)
	switch {
	case err == nil && news:
		away = now.Sub(q.away)
		q.away = time.Time{}
	case news:
		q.away = now
	}
	q.err = err
	return news, away
}

func (q *queue) health() Health {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Health{Pending: len(q.waiting), Lost: q.lost, UnavailableSince: q.away, Err: q.err, CompleteSince: q.lostAt}
}

// checkKept finds out whether a shared archive still has the last part that it has taken. If it has
// not, it is another one, or began again with less, such as a Redis that was restarted.
func (r *Recorder) checkKept(ctx context.Context) {
	q, now := &r.queue, r.options.Clock()
	q.mu.Lock()
	last := q.arrived
	q.mu.Unlock()
	if r.own == nil || last.part == nil || now.Unix()-last.part.Start >= r.archive.Levels(archive.Series)[0].Keep {
		return
	}
	slots, err := r.archive.Read(ctx, archive.Series, 0, last.part.Start, last.part.Start+1)
	if err != nil || len(slots) > 0 && slots[0].Frame.Requests.Total() >= last.requests {
		return
	}
	q.mu.Lock()
	q.arrived, q.lostAt = waiting{}, now
	q.mu.Unlock()
	r.options.Logger.Warn("the archive has lost statistics; those of the time before are incomplete")
}

// send sends what there is, every second, and rolls up from time to time.
func (r *Recorder) send(ctx context.Context) {
	roll := time.NewTimer(rollUpEvery)
	defer roll.Stop()
	for {
		select {
		case <-r.queue.signal:
			arrived := r.sendAll(ctx)
			for _, over := range r.queue.take() {
				r.publish(ctx, over, arrived)
			}
		case <-roll.C:
			err := r.archive.RollUp(ctx, r.options.Clock())
			r.checkKept(ctx)
			// Whether what waits can be added, only adding it tells.
			if ctx.Err() == nil && (err != nil || r.queue.health().Pending == 0) {
				r.note(err)
			}
			roll.Reset(time.Duration(float64(rollUpEvery) * (0.8 + 0.4*rand.Float64())))
		case <-ctx.Done():
			return
		}
	}
}

// sendAll reports whether everything has arrived. What has not is tried again with
// the next second.
func (r *Recorder) sendAll(ctx context.Context) bool {
	r.sending.Lock()
	defer r.sending.Unlock()
	for {
		batch := r.queue.first()
		if len(batch) == 0 {
			return true
		}
		err := r.archive.Add(ctx, batch)
		if ctx.Err() != nil {
			return false
		}
		if err == nil && r.queue.health().Err != nil { // before anybody asks it again
			r.checkKept(ctx)
		}
		r.note(err)
		if err != nil {
			return false
		}
		r.queue.sent(batch)
	}
}

// note logs that the archive has become unavailable, or available again.
func (r *Recorder) note(err error) {
	switch news, away := r.queue.report(r.options.Clock(), err); {
	case news && err != nil:
		r.options.Logger.Warn("could not save the statistics; they stay in memory for a while", "error", err, "for", r.options.MaxPending)
	case news:
		r.options.Logger.Info("the statistics are saved again", "after", away, "lost", r.queue.health().Lost)
	}
}
