package budget

import (
	"net/netip"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/clientip"
)

// Inbox is memory for what clients send: it is shared by what is being received, and by what has
// been received and is in use. An item takes room for what has come, not for what was announced. When
// there is no more room, others wait a little, as long as anything gets on; what does not is given up. So no
// client can make others wait by being slow, and items that have come in part do not wait for each other.
//
// The last quarter of the room is only for clients that have less than an eighth of it. So one client
// can have most of the room while nobody else wants any, and never all of it.
type Inbox struct {
	size int64

	mu          sync.Mutex
	free        int64
	inUse       int64 // of items that have been received
	announced   int64 // by items that are being received, beyond what has come
	first, last *Item // all that have room; of those being received, the slowest first
	freed       chan struct{}
}

// Sender is who sends an item.
type Sender interface {
	// Client is asked only when room is short.
	Client() netip.Addr

	// Abort ends what is being received. It must not wait. It is called once at most, and not after
	// Received or Release.
	Abort()
}

// Item is something that is received. The zero value has no room.
type Item struct {
	from         Sender
	n, announced int64
	moved        time.Time // when it got on last
	waits        bool      // for room
	state        state
	before, next *Item
}

type state uint8

const (
	outside   state = iota // it has no room
	receiving              // and may be given up
	inUse
	aborted // what it had belongs to others
)

const (
	shortage = 4 // room is short when less than this part of it is free
	share    = 8 // what a client may have then

	// idle is how long an item may take to get on before it is given up for others at once, and
	// patience how long an item waits for room.
	idle     = time.Second
	patience = 2 * time.Second
)

// NewInbox returns an inbox of this size.
func NewInbox(size int64) *Inbox { return &Inbox{size: size, free: size} }

// Grow takes n more room for an item, which has got on. It returns false if there is none, or if the item
// was given up; then the item has no room any more. What was announced matters only the first time: what
// others have begun to send should have room first.
func (b *Inbox) Grow(i *Item, from Sender, n, announced int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, b.size)
	if i.state == outside {
		i.state, i.from, i.announced = receiving, from, max(n, announced)
		b.announced += i.announced
		b.pushLocked(i)
	}
	for end := (time.Time{}); i.state == receiving; {
		fits := b.fitsLocked(i, n)
		if fits && (i.n > 0 || b.free-b.size/shortage >= b.announced) {
			b.takeLocked(i, n)
			return true
		}
		now := time.Now()
		if end.IsZero() {
			end = now.Add(patience)
		}
		s := b.surveyLocked(i, n, now)
		late := !now.Before(end)
		switch {
		case fits && (late || !s.hope || s.room >= s.announced):
			b.takeLocked(i, n)
			return true
		case !fits && s.victim != nil && (s.entitled || !s.hope || now.Sub(s.victim.moved) >= idle || late && i.n > 0):
			b.dropLocked(s.victim, aborted)
			s.victim.from.Abort()
		case !s.hope || late:
			b.dropLocked(i, aborted)
		default:
			b.waitLocked(i, min(end.Sub(now), idle/2))
		}
	}
	return false
}

// takeLocked takes room.
func (b *Inbox) takeLocked(i *Item, n int64) {
	came := min(n, i.announced)
	b.free -= n
	b.announced -= came
	i.n, i.announced = i.n+n, i.announced-came
	b.moveLocked(i)
}

// Progress takes note that an item got on.
func (b *Inbox) Progress(i *Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i.state == receiving {
		b.moveLocked(i)
	}
}

// Received says that all of an item has come. It is false if the item was given up before.
func (b *Inbox) Received(i *Item) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i.state == receiving {
		b.announced -= i.announced
		b.inUse += i.n
		i.state, i.announced = inUse, 0
	}
	return i.state != aborted
}

// Release gives the room of an item back, if it has any.
func (b *Inbox) Release(i *Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i.state == receiving || i.state == inUse {
		b.dropLocked(i, outside)
	}
}

// Free is how much room nobody has.
func (b *Inbox) Free() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free
}

// fitsLocked reports whether there is room for n more of an item.
func (b *Inbox) fitsLocked(i *Item, n int64) bool {
	return n <= b.free && (b.free-n >= b.size/shortage || b.byClientLocked()[clientip.Network(i.from.Client())]+n <= b.size/share)
}

// byClientLocked is how much room each client has.
func (b *Inbox) byClientLocked() map[netip.Addr]int64 {
	has := map[netip.Addr]int64{}
	for i := b.first; i != nil; i = i.next {
		has[clientip.Network(i.from.Client())] += i.n
	}
	return has
}

// survey is what others do while an item has no room.
type survey struct {
	// victim is which of them is given up first: the slowest of the same client if that has its share,
	// else the slowest of a client that has more, to which the item is entitled, else the slowest. It is
	// nil if there is none.
	victim   *Item
	entitled bool

	hope      bool  // something gets on, so that there will be room
	room      int64 // that the client can have
	announced int64 // by those that get on, and by the item
}

func (b *Inbox) surveyLocked(i *Item, n int64, now time.Time) survey {
	has, own := b.byClientLocked(), clientip.Network(i.from.Client())
	greedy := has[own]+n > b.size/share
	s := survey{hope: b.inUse > 0, room: b.free, announced: i.announced}
	if has[own]+i.announced > b.size/share {
		s.room -= b.size / shortage
	}
	for o := b.first; o != nil; o = o.next {
		if o == i || o.state != receiving || o.n == 0 {
			continue
		}
		client := clientip.Network(o.from.Client())
		above := has[client] > b.size/share
		if now.Sub(o.moved) < idle && (!o.waits || i.n == 0) { // who has not begun waits for all that have
			s.hope = true
			if greedy || !above {
				s.announced += o.announced
			}
		}
		switch {
		case greedy && client != own, s.entitled:
		case !greedy && above:
			s.victim, s.entitled = o, true
		case s.victim == nil:
			s.victim = o
		}
	}
	return s
}

// waitLocked waits until there is more room, but not for long. The item gets on as fast as it can.
func (b *Inbox) waitLocked(i *Item, most time.Duration) {
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	freed, timer := b.freed, time.NewTimer(most)
	defer timer.Stop()
	i.waits = true
	b.mu.Unlock()
	select {
	case <-freed:
	case <-timer.C:
	}
	b.mu.Lock()
	if i.waits = false; i.state == receiving {
		b.moveLocked(i)
	}
}

// dropLocked takes an item out of the list, and its room back.
func (b *Inbox) dropLocked(i *Item, s state) {
	if i.state == inUse {
		b.inUse -= i.n
	}
	b.free += i.n
	b.announced -= i.announced
	b.removeLocked(i)
	i.n, i.announced, i.state = 0, 0, s
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

// moveLocked makes an item the last that is given up.
func (b *Inbox) moveLocked(i *Item) {
	i.moved = time.Now()
	if b.last != i {
		b.removeLocked(i)
		b.pushLocked(i)
	}
}

func (b *Inbox) pushLocked(i *Item) {
	if i.before = b.last; b.last != nil {
		b.last.next = i
	} else {
		b.first = i
	}
	b.last = i
}

func (b *Inbox) removeLocked(i *Item) {
	if i.before != nil {
		i.before.next = i.next
	} else {
		b.first = i.next
	}
	if i.next != nil {
		i.next.before = i.before
	} else {
		b.last = i.before
	}
	i.before, i.next = nil, nil
}
