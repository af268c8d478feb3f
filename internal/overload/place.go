package overload

import (
	"net/netip"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/clientip"
)

// Place is that of a request in flight whose client is known. The zero value has none.
//
// While a request waits for its client, to send more of the request or to read more of the response, it is
// no load. So when there is no place for another request, one that waits loses its place: first of a
// client that has more than half of the places, for the benefit of one that has less; of others only if
// the client is slow. If that is not enough, no client gets more than half of the places for a while, for
// requests that are not more important, and others get what they have beyond. While there are places, one
// client can have all.
type Place struct {
	limiter  *Limiter
	priority Priority
	client   netip.Addr
	index    int  // in the limiter's taken, guarded by its mu
	left     bool // the same

	mu       sync.Mutex // taken after the limiter's
	lost     bool       // written with both
	waits    bool
	answered bool          // there is a response
	since    time.Duration // when the client began to move the bytes that it moves; 0 if it has not
	moved    int           // bytes since then
}

// client is one that has places.
type client struct {
	address netip.Addr
	places  int
	index   int32 // in the limiter's clients
}

// Before puts the client with the most places on top.
func (c *client) Before(other *client) bool { return c.places > other.places }
func (c *client) Index() *int32             { return &c.index }

const (
	block    = 16 << 10    // bytes that a client has to move
	slow     = time.Second // within this time
	shortage = time.Second // for which places are short after a client has found none
	halfway  = 2

	// maxLooks is how many places a request without one looks at, so that an overload of many
	// requests does not cost each of them a look at all others. The next one goes on from there.
	maxLooks = 256
)

// Enter is Acquire for a request of a client. The place is left by Leave.
func (l *Limiter) Enter(now time.Duration, priority Priority, client netip.Addr, p *Place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick(now)
	l.demand.arrived[priority]++
	p.limiter, p.priority, p.client = l, priority, clientip.Network(client)
	p.lost, p.waits, p.answered, p.since, p.moved = false, false, false, 0, 0
	if p.left = !l.enterLocked(now, p); p.left {
		l.denyLocked(now)
	}
	return !p.left
}

// enterLocked takes a place.
func (l *Limiter) enterLocked(now time.Duration, p *Place) bool {
	if now < l.shortUntil[p.priority] && l.placesOfLocked(p.client) >= l.halfLocked() || l.inFlight >= l.places(p.priority) && !l.makePlaceLocked(now, p) {
		return false
	}
	l.inFlight++
	p.index = len(l.taken)
	l.taken = append(l.taken, p)
	c := l.byAddress[p.client]
	if c == nil {
		c = &client{address: p.client}
		l.byAddress[p.client] = c
		l.clients.Push(c)
	}
	c.places++
	l.clients.Fix(c)
	return true
}

// unlinkLocked forgets a place that was taken.
func (l *Limiter) unlinkLocked(p *Place) {
	last := len(l.taken) - 1
	l.taken[p.index] = l.taken[last]
	l.taken[p.index].index = p.index
	l.taken[last] = nil
	l.taken = l.taken[:last]
	c := l.byAddress[p.client]
	if c.places--; c.places > 0 {
		l.clients.Fix(c)
		return
	}
	l.clients.Remove(c)
	delete(l.byAddress, p.client)
}

// makePlaceLocked takes places from requests that wait for their clients, until there is one. What a client
// has beyond half of the places does not count for one that has less: until it ends, there are more in
// flight than the limit says, but not more than the maximum.
func (l *Limiter) makePlaceLocked(now time.Duration, newcomer *Place) bool {
	var most netip.Addr
	if len(l.clients) > 0 {
		most = l.clients[0].address
	}
	modest := l.placesOfLocked(newcomer.client) < l.halfLocked()
	greedy := modest && most != newcomer.client && l.placesOfLocked(most) > l.halfLocked()
	need := l.places(newcomer.priority)
	for looks := min(maxLooks, len(l.taken)); looks > 0 && len(l.taken) > 0 && l.inFlight >= need; looks-- {
		l.hand = (l.hand + 1) % len(l.taken)
		p := l.taken[l.hand]
		p.mu.Lock()
		if p.waits && (greedy && p.client == most || now-p.since >= slow) {
			p.lost = true
			l.unlinkLocked(p)
			l.inFlight--
		}
		p.mu.Unlock()
	}
	if l.inFlight < need {
		return true
	}
	if modest {
		for p := Low; p <= newcomer.priority; p++ {
			l.shortUntil[p] = now + shortage
		}
	}
	excess := l.placesOfLocked(most) - l.halfLocked()
	return greedy && l.inFlight-max(0, excess) < need && l.inFlight < int(l.max)
}

func (l *Limiter) halfLocked() int { return max(1, l.limit/halfway) }

// placesOfLocked is how many places a client has.
func (l *Limiter) placesOfLocked(address netip.Addr) int {
	if c := l.byAddress[address]; c != nil {
		return c.places
	}
	return 0
}

// Wait says that the request waits for its client from now on.
func (p *Place) Wait(now time.Duration) {
	if p.limiter == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits = true; p.since == 0 {
		p.since = max(now, 1)
	}
}

// Resume says that the client has moved n bytes, and that the request goes on. If it has lost its place, it
// needs another one, unless there is a response: it returns false if there is none.
func (p *Place) Resume(now time.Duration, n int) bool {
	if p.limiter == nil {
		return true
	}
	p.mu.Lock()
	p.waits = false
	if p.moved += n; p.moved >= block {
		p.since, p.moved = 0, 0
	}
	lost, answered := p.lost, p.answered
	p.mu.Unlock()
	return !lost || p.reenter(now, answered)
}

// reenter takes a place for a request that has lost its own. One that is answered can do without.
func (p *Place) reenter(now time.Duration, answered bool) bool {
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tick(now); p.left || !p.lost || answered && l.inFlight >= l.places(p.priority) {
		return true // maybe with the place that another goroutine has just taken for it
	}
	entered := l.enterLocked(now, p)
	if !entered && !answered {
		l.denyLocked(now)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = !entered
	return entered || answered
}

// Answer says that there is a response. From now on the request waits only for a client that reads.
func (p *Place) Answer() {
	if p.limiter == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered, p.waits, p.since, p.moved = true, false, 0, 0
}

// Leave gives the place back, if it is not lost. It does nothing the second time.
func (p *Place) Leave(now time.Duration, o Outcome) {
	l := p.limiter
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.left {
		return
	}
	l.tick(now)
	if p.left = true; !p.lost {
		l.unlinkLocked(p)
		l.releaseLocked(now, o)
	}
}
