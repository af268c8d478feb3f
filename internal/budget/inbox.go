package budget

import (
	"net/netip"
	"sync"
	"time"
)

// Inbox is memory for what clients send: it is shared by what is being received, and by what has
// been received and is in use. An item takes room for what has come, not for what was announced. When
// there is no more room, an item that does not get on is given up, so that no client can make others
// wait by being slow.
//
// The last quarter of the room is only for clients that have less than an eighth of it. So one client
// can have most of the room while nobody else wants any, and never all of it.
type Inbox struct {
	size int64

	mu          sync.Mutex
	free        int64
	inUse       int64 // of items that have been received
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
	n            int64
	moved        time.Time // when it got on last
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
	// patience how long an item waits for room that is in use.
	idle     = time.Second
	patience = 2 * time.Second
)

// NewInbox returns an inbox of this size.
func NewInbox(size int64) *Inbox { return &Inbox{size: size, free: size} }

// Grow takes so much more room for an item, which has got on. It returns false if there is none, or
// if the item was given up; then the item has no room any more.
func (b *Inbox) Grow(i *Item, from Sender, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, b.size)
	if i.state == outside {
		i.state, i.from = receiving, from
		b.pushLocked(i)
	}
	for end := (time.Time{}); i.state == receiving; {
		if b.fitsLocked(i, n) {
			b.free -= n
			i.n += n
			b.moveLocked(i)
			return true
		}
		now := time.Now()
		if end.IsZero() {
			end = now.Add(patience)
		}
		victim := b.victimLocked(i, n)
		if victim != nil && (b.inUse == 0 || now.Sub(victim.moved) >= idle || !now.Before(end)) {
			b.abortLocked(victim)
			continue
		}
		if b.inUse == 0 || !now.Before(end) {
			b.dropLocked(i, aborted)
			break
		}
		b.waitLocked(i, min(end.Sub(now), idle/2))
	}
	return false
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
		i.state = inUse
		b.inUse += i.n
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
	return n <= b.free && (b.free-n >= b.size/shortage || b.hasLocked(i.from.Client())+n <= b.size/share)
}

// hasLocked is how much room a client has.
func (b *Inbox) hasLocked(client netip.Addr) (n int64) {
	client = network(client)
	for i := b.first; i != nil; i = i.next {
		if network(i.from.Client()) == client {
			n += i.n
		}
	}
	return n
}

// network is the address of a client, or its network, of which it can have any address.
func network(a netip.Addr) netip.Addr {
	if a.Is6() && !a.Is4In6() {
		p, _ := a.WithZone("").Prefix(64)
		return p.Addr()
	}
	return a.Unmap()
}

// victimLocked is which item is given up so that another can have n more: the slowest of the same
// client if that has its share, else the slowest of those that have more, else the slowest. It is nil
// if there is no other.
func (b *Inbox) victimLocked(i *Item, n int64) *Item {
	has := map[netip.Addr]int64{}
	for o := b.first; o != nil; o = o.next {
		has[network(o.from.Client())] += o.n
	}
	own := network(i.from.Client())
	greedy := has[own]+n > b.size/share
	var slowest *Item
	for o := b.first; o != nil; o = o.next {
		client := network(o.from.Client())
		switch {
		case o == i || o.state != receiving || o.n == 0 || greedy && client != own:
		case greedy || has[client] > b.size/share:
			return o
		case slowest == nil:
			slowest = o
		}
	}
	return slowest
}

// abortLocked gives an item up.
func (b *Inbox) abortLocked(i *Item) {
	b.dropLocked(i, aborted)
	i.from.Abort()
}

// waitLocked waits until something is not in use any more, but not for long. The item gets on as fast
// as it can.
func (b *Inbox) waitLocked(i *Item, most time.Duration) {
	if b.freed == nil {
		b.freed = make(chan struct{})
	}
	freed, timer := b.freed, time.NewTimer(most)
	defer timer.Stop()
	b.mu.Unlock()
	select {
	case <-freed:
	case <-timer.C:
	}
	b.mu.Lock()
	if i.state == receiving {
		b.moveLocked(i)
	}
}

// dropLocked takes an item out of the list, and its room back.
func (b *Inbox) dropLocked(i *Item, s state) {
	if i.state == inUse {
		b.inUse -= i.n
	}
	b.free += i.n
	b.removeLocked(i)
	i.n, i.state = 0, s
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
