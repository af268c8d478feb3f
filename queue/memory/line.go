package memory

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/queue"
)

// line is one queue. The scripts of queue/redis say the same in Lua.
type line struct {
	terms *queue.Terms // nil if the queue is in a snapshot but not declared

	items                  map[int64]*item
	ids                    map[string]*item // of those that have one
	ready, delayed, leased pile
	dead                   []*item // by number
	done                   memory

	last    int64 // the highest number that was used
	pace    queue.Pace
	dropped int64

	watchers map[*byte]func()
}

func newLine(t *queue.Terms) *line {
	return &line{
		terms: t, items: map[int64]*item{}, ids: map[string]*item{},
		done: memory{byID: map[string]*remembered{}}, watchers: map[*byte]func(){},
	}
}

// sweep clears away what has become due by itself.
func (l *line) sweep(now weir.Micros) {
	if slot := l.terms.Slot(l.pace, now); slot.Next < l.pace.Next {
		l.pace = slot // the clock has stepped back, or the pace is quicker than it was
	}
	for n := 0; n < queue.MaxSweep && isDue(l.leased, now); n++ {
		i := l.leased[0]
		if i.tries >= l.terms.MaxTries {
			l.bury(i, queue.Expired, now)
		} else {
			l.move(i, queue.Ready, 0)
		}
	}
	for n := 0; n < queue.MaxSweep && isDue(l.delayed, now); n++ {
		l.move(l.delayed[0], queue.Ready, 0)
	}
	for n := 0; n < queue.MaxSweep && len(l.done.first) > 0 && l.done.first[0].until <= now; n++ {
		l.done.forget()
	}
}

func (l *line) pileOf(s queue.State) *pile {
	switch s {
	case queue.Ready:
		return &l.ready
	case queue.Delayed:
		return &l.delayed
	case queue.Leased:
		return &l.leased
	}
	return nil
}

// move takes an item from where it is to another state.
func (l *line) move(i *item, to queue.State, due weir.Micros) {
	l.unlink(i)
	i.state, i.due = to, due
	l.pileOf(to).Push(i)
}

// unlink takes an item from where it is.
func (l *line) unlink(i *item) {
	if i.state == queue.Dead {
		if at, found := l.findDead(i.number); found {
			l.dead = slices.Delete(l.dead, at, at+1)
		}
	} else if p := l.pileOf(i.state); p != nil {
		p.Remove(i)
	}
	i.state = ""
}

// remove forgets an item altogether.
func (l *line) remove(i *item) {
	l.unlink(i)
	delete(l.items, i.number)
	if i.id != "" {
		delete(l.ids, i.id)
	}
}

func (l *line) findDead(number int64) (int, bool) {
	return slices.BinarySearchFunc(l.dead, number, func(i *item, n int64) int { return cmp.Compare(i.number, n) })
}

// bury makes a dead letter of an item. Its secret stays: if the worker was only slow, and
// says that it is done, it is.
func (l *line) bury(i *item, reason string, now weir.Micros) {
	l.unlink(i)
	i.state, i.due, i.died, i.reason = queue.Dead, 0, now, reason
	at, _ := l.findDead(i.number)
	l.dead = slices.Insert(l.dead, at, i)
	for n := 0; n < queue.MaxSweep && len(l.dead) > l.terms.MaxDead; n++ {
		l.remove(l.dead[0])
		l.dropped++
	}
}

func (l *line) length() int { return len(l.ready) + len(l.delayed) + len(l.leased) }

func (l *line) push(w queue.Work, now weir.Micros) (queue.Pushed, error) {
	if w.ID != "" {
		if i := l.ids[w.ID]; i != nil {
			return l.placeOf(i, now), nil
		}
		if l.done.knows(w.ID, now) {
			return queue.Pushed{Duplicate: true, State: queue.Done}, nil
		}
	}
	if l.length() >= l.terms.Capacity {
		return queue.Pushed{}, queue.ErrFull
	}
	i := &item{id: w.ID, payload: bytes.Clone(w.Payload), pushed: now}
	l.append(i, now)
	position := int64(len(l.ready))
	return queue.Pushed{
		Number: i.number, State: queue.Ready, Position: position,
		Wait: l.terms.Wait(l.terms.Slot(l.pace, now), now, position),
	}, nil
}

// append puts an item at the end under a new number.
func (l *line) append(i *item, now weir.Micros) {
	l.last = max(l.last+1, int64(now))
	i.number = l.last
	l.items[i.number] = i
	if i.id != "" {
		l.ids[i.id] = i
	}
	l.move(i, queue.Ready, 0)
}

// placeOf is what is said of an item that was pushed before.
func (l *line) placeOf(i *item, now weir.Micros) queue.Pushed {
	p := queue.Pushed{Number: i.number, Duplicate: true, State: i.state}
	if i.state == queue.Ready {
		p.Position = rank(l.ready, i)
		p.Wait = l.terms.Wait(l.terms.Slot(l.pace, now), now, p.Position)
	}
	return p
}

func (l *line) lease(ask queue.Ask, now weir.Micros) queue.Batch {
	var b queue.Batch
	horizon := now + weir.Micros(ask.Ahead.Microseconds())
	size := 0
	slot := l.terms.Slot(l.pace, now)
	for len(l.ready) > 0 && len(b.Leases) < ask.Max && size < queue.MaxPageBytes && slot.Release() <= horizon {
		i := l.ready[0]
		release := slot.Release()
		i.tries++
		i.secret, i.slot = queue.NewSecret(), slot
		l.move(i, queue.Leased, release+weir.Micros(l.terms.VisibilityMicros))
		slot = l.terms.After(slot)
		l.pace = slot
		slot = l.terms.Slot(slot, now)
		size += len(i.payload)
		b.Leases = append(b.Leases, queue.Lease{
			Number: i.number, ID: i.id, Payload: bytes.Clone(i.payload), Tries: i.tries, Pushed: i.pushed,
			Token:   queue.Token(i.number, i.secret),
			Release: release, Delay: time.Duration(release-now) * time.Microsecond, Expires: i.due,
		})
	}
	b.Wait = l.wait(slot.Release()-(horizon-now), now)
	return b
}

// wait is how long until something can be leased: when there is something, and its turn.
func (l *line) wait(turn, now weir.Micros) time.Duration {
	if l.length() == 0 {
		return weir.Never
	}
	first := now
	if len(l.ready) == 0 {
		first = 1 << 62
		for _, p := range []pile{l.delayed, l.leased} {
			if len(p) > 0 {
				first = min(first, p[0].due)
			}
		}
	}
	return time.Duration(max(first, turn, now)-now) * time.Microsecond
}

// finish forgets an item that was done, but not at once that it was.
func (l *line) finish(i *item, now weir.Micros) {
	l.remove(i)
	if i.id != "" && l.terms.RememberMicros > 0 {
		l.done.remember(i.id, now+weir.Micros(l.terms.RememberMicros), l.terms.Capacity)
	}
}

func (l *line) fail(i *item, f queue.Failure, now weir.Micros) queue.Outcome {
	i.secret = ""
	if f.Bury || i.tries >= l.terms.MaxTries {
		l.bury(i, queue.Cut(f.Reason), now)
		return queue.Outcome{Dead: true}
	}
	back := l.terms.RetryDelay(i.tries)
	l.move(i, queue.Delayed, now+weir.Micros(back))
	return queue.Outcome{RetryAfter: time.Duration(back) * time.Microsecond}
}

// giveBack undoes a lease. Only the last turn can be given to somebody else.
func (l *line) giveBack(i *item) {
	i.secret = ""
	i.tries--
	if i.slot.Rate == l.terms.Rate && l.terms.After(i.slot) == l.pace {
		l.pace = i.slot
	}
	l.move(i, queue.Ready, 0)
}

func (l *line) stats(now weir.Micros) queue.Stats {
	s := queue.Stats{
		Ready: int64(len(l.ready)), Delayed: int64(len(l.delayed)), Leased: int64(len(l.leased)),
		Capacity: int64(l.terms.Capacity), Dead: int64(len(l.dead)), Dropped: l.dropped,
	}
	if len(l.ready) > 0 {
		s.Age = time.Duration(max(0, now-l.ready[0].pushed)) * time.Microsecond
		s.Wait = l.terms.Wait(l.terms.Slot(l.pace, now), now, 1)
	}
	return s
}
