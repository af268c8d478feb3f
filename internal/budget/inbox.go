package budget

import (
	"cmp"
	"container/list"
	"net/netip"
	"slices"
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
//
// On average, a call takes a time that does not depend on how many items there are. One that frees room wakes
// all that wait, which is a bounded number.
type Inbox struct {
	size int64

	mu      sync.Mutex
	free    int64
	inUse   int64 // of items that have been received
	clients map[netip.Addr]*client
	above   []*client // those that have more than their share: fewer than share
	wanted  int64     // by all clients, up to the share of each
	freed   chan struct{}

	// What is being received and has begun: items that got on within idle, and others; the slowest first.
	fresh, stalled list.List
	waiting        int // for room, begun or not
	moving, begun  int // fresh ones that do not wait for room, and all fresh ones
}

// client is who has items.
type client struct {
	address        netip.Addr
	items, waiting int
	n              int64
	announced      int64     // by fresh items, beyond what has come
	receiving      list.List // items that have begun; the slowest first
}

// Sender is who sends an item.
type Sender interface {
	Client() netip.Addr

	// Abort ends what is being received. It must not wait. It is called once at most, and not after
	// Received or Release.
	Abort()
}

// Item is something that is received. The zero value has no room.
type Item struct {
	from           Sender
	client         *client
	n, announced   int64
	moved          time.Time // when it got on last
	waits, stalled bool      // for room; for longer than idle
	state          state
	all, own       *list.Element // in a list of the inbox, and of the client
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

	// hasty is idle for who has waited for so long: others that waited, too, may have taken what was free.
	hasty = idle / 4

	// queue is how many items wait for room. The last quarter is for clients with less than their share of them.
	queue = 1024
)

// NewInbox returns an inbox of this size.
func NewInbox(size int64) *Inbox {
	return &Inbox{size: size, free: size, clients: map[netip.Addr]*client{}}
}

// Grow takes n more room for an item, which has got on. It returns false if there is none, or if the item
// was given up; then the item has no room any more. What was announced matters only the first time: what
// others have begun to send should have room first.
func (b *Inbox) Grow(i *Item, from Sender, n, announced int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, b.size)
	if i.state == outside {
		i.state, i.from, i.announced = receiving, from, max(n, announced)
		i.client = b.clientLocked(clientip.Network(from.Client()))
	}
	for end := (time.Time{}); i.state == receiving; {
		now := time.Now()
		if end.IsZero() {
			end = now.Add(patience)
		}
		b.moveLocked(i, now)
		b.ageLocked(now)
		fits, hope := b.fitsLocked(i, n), b.hopeLocked(i)
		slow, late := idle, b.waiting >= queue || b.waiting >= queue-queue/shortage && i.client.waiting >= queue/share
		if !now.Before(end) {
			slow, late = hasty, true
		}
		victim, entitled := b.victimLocked(i, n)
		switch {
		case fits && (i.n > 0 || late || !hope || b.hasRoomLocked(i)):
			b.takeLocked(i, n, now)
			return true
		case !fits && victim != nil && (entitled || !hope || now.Sub(victim.moved) >= slow || late && i.n > 0):
			b.dropLocked(victim, aborted)
			victim.from.Abort()
		case !fits && (!hope || late):
			b.dropLocked(i, aborted)
		default:
			b.waitLocked(i, min(end.Sub(now), idle/2))
		}
	}
	return false
}

// takeLocked takes room.
func (b *Inbox) takeLocked(i *Item, n int64, now time.Time) {
	b.countLocked(i, -1)
	b.free -= n
	i.n, i.announced = i.n+n, max(0, i.announced-n)
	b.countLocked(i, 1)
	b.moveLocked(i, now)
}

// Progress takes note that an item got on.
func (b *Inbox) Progress(i *Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i.state == receiving {
		b.moveLocked(i, time.Now())
	}
}

// Received says that all of an item has come. It is false if the item was given up before.
func (b *Inbox) Received(i *Item) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i.state == receiving {
		b.countLocked(i, -1)
		i.state = inUse
		b.countLocked(i, 1)
		b.unlinkLocked(i)
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
	return n <= b.free && (b.free-n >= b.size/shortage || i.client.n+n <= b.size/share)
}

// hopeLocked reports whether there will be more room, because something else gets on or is in use. An item that
// has begun does not wait for others that wait.
func (b *Inbox) hopeLocked(i *Item) bool {
	others := b.begun
	if i.n > 0 {
		others = b.moving - 1
	}
	return b.inUse > 0 || others > 0
}

// hasRoomLocked reports whether there is room for all of an item that has not begun, and for what those have
// announced that get on. What another client has announced counts up to its share.
func (b *Inbox) hasRoomLocked(i *Item) bool {
	c, room := i.client, b.free
	if c.n+i.announced > b.size/share {
		room -= b.size / shortage
	}
	return room >= i.announced+c.announced+b.wanted-b.wantedLocked(c)
}

// wantedLocked is what a client has announced, up to its share of the room.
func (b *Inbox) wantedLocked(c *client) int64 {
	return max(0, min(c.announced, b.size/share-c.n))
}

// victimLocked is which other item is given up first: the slowest of the same client if that has its share,
// else the slowest of a client that has more, to which the item is entitled, else the slowest. It is nil if
// there is none.
func (b *Inbox) victimLocked(i *Item, n int64) (victim *Item, entitled bool) {
	if i.client.n+n > b.size/share {
		return first(&i.client.receiving, i), false
	}
	for _, c := range b.above {
		if o := first(&c.receiving, nil); o != nil && (victim == nil || o.moved.Before(victim.moved)) {
			victim = o
		}
	}
	if victim != nil {
		return victim, true
	}
	return cmp.Or(first(&b.stalled, i), first(&b.fresh, i)), false
}

// first is the first item of a list that is not this one.
func first(l *list.List, but *Item) *Item {
	for e := l.Front(); e != nil; e = e.Next() {
		if i := e.Value.(*Item); i != but {
			return i
		}
	}
	return nil
}

// clientLocked is the client of one more item.
func (b *Inbox) clientLocked(address netip.Addr) *client {
	c := b.clients[address]
	if c == nil {
		c = &client{address: address}
		b.clients[address] = c
	}
	c.items++
	return c
}

// countLocked adds an item to the sums (by 1), or takes it from them (by -1).
func (b *Inbox) countLocked(i *Item, by int) {
	c := i.client
	was := c.n > b.size/share
	b.wanted -= b.wantedLocked(c)
	c.n += int64(by) * i.n
	switch {
	case i.state == inUse:
		b.inUse += int64(by) * i.n
	case i.n > 0 && !i.stalled:
		c.announced += int64(by) * i.announced
		b.begun += by
		if !i.waits {
			b.moving += by
		}
	}
	b.wanted += b.wantedLocked(c)
	if is := c.n > b.size/share; is && !was {
		b.above = append(b.above, c)
	} else if was && !is {
		b.above = slices.DeleteFunc(b.above, func(o *client) bool { return o == c })
	}
}

// waitLocked waits until there is more room, but not for long. The item gets on as fast as it can.
func (b *Inbox) waitLocked(i *Item, most time.Duration) {
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	freed, timer, c := b.freed, time.NewTimer(most), i.client
	defer timer.Stop()
	b.countLocked(i, -1)
	i.waits = true
	b.countLocked(i, 1)
	b.waiting++
	c.waiting++
	b.mu.Unlock()
	select {
	case <-freed:
	case <-timer.C:
	}
	b.mu.Lock()
	b.waiting--
	c.waiting--
	if i.state != receiving {
		i.waits = false
		return
	}
	b.countLocked(i, -1)
	i.waits = false
	b.countLocked(i, 1)
}

// dropLocked takes the room of an item back.
func (b *Inbox) dropLocked(i *Item, s state) {
	b.countLocked(i, -1)
	b.unlinkLocked(i)
	b.free += i.n
	if i.client.items--; i.client.items == 0 {
		delete(b.clients, i.client.address)
	}
	i.n, i.announced, i.client, i.state = 0, 0, nil, s
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

// moveLocked makes an item that has begun the last that is given up.
func (b *Inbox) moveLocked(i *Item, now time.Time) {
	switch {
	case i.n == 0:
		return
	case i.all == nil:
		i.all, i.own = b.fresh.PushBack(i), i.client.receiving.PushBack(i)
	case i.stalled:
		b.stallLocked(i, false, &b.stalled, &b.fresh)
	}
	i.moved = now
	b.fresh.MoveToBack(i.all)
	i.client.receiving.MoveToBack(i.own)
}

// ageLocked takes note of what has not got on for too long.
func (b *Inbox) ageLocked(now time.Time) {
	for i := first(&b.fresh, nil); i != nil && now.Sub(i.moved) >= idle; i = first(&b.fresh, nil) {
		b.stallLocked(i, true, &b.fresh, &b.stalled)
	}
}

func (b *Inbox) stallLocked(i *Item, stalled bool, from, to *list.List) {
	b.countLocked(i, -1)
	i.stalled = stalled
	b.countLocked(i, 1)
	from.Remove(i.all)
	i.all = to.PushBack(i)
}

// unlinkLocked takes an item out of the lists in which it is.
func (b *Inbox) unlinkLocked(i *Item) {
	if i.all != nil {
		b.fresh.Remove(i.all)
		b.stalled.Remove(i.all)
		i.client.receiving.Remove(i.own)
	}
	i.all, i.own, i.stalled = nil, nil, false
}
