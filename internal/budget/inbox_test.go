package budget

import (
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sender is a client whose items may be given up.
type sender struct {
	client  netip.Addr
	asked   int
	aborted bool
}

func (s *sender) Client() netip.Addr {
	s.asked++
	return s.client
}

func (s *sender) Abort() { s.aborted = true }

type sent struct {
	*sender
	*Item
	in *Inbox
}

func (b *Inbox) from(client string) sent {
	return sent{&sender{client: netip.MustParseAddr(client)}, new(Item), b}
}

func (s sent) grow(n int64) bool { return s.in.Grow(s.Item, s.sender, n, 0) }

// sums is what must be as in the beginning when there are no items.
func (b *Inbox) sums() []int64 {
	return []int64{b.free, b.inUse, b.wanted, int64(len(b.clients)), int64(len(b.above)), int64(b.fresh.Len()), int64(b.stalled.Len()),
		int64(b.waiting), int64(b.moving), int64(b.begun)}
}

// One client may have nearly all the room as long as nobody else wants any. Then what it sends is given
// up, the slowest first, and what others send is not.
func TestInboxShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewInbox(800)
		var greedy []sent
		for i := range 6 {
			greedy = append(greedy, b.from("2001:db8::1"))
			if !greedy[i].grow(100) {
				t.Fatalf("%d of 800 are not to be had", 100*(i+1))
			}
		}
		time.Sleep(time.Millisecond)
		b.Progress(greedy[0].Item)
		honest := [3]sent{b.from("192.0.2.1"), b.from("192.0.2.2"), b.from("::ffff:192.0.2.3")}
		for i, h := range honest {
			if !h.grow(100) {
				t.Errorf("honest client %d gets no room", i)
			}
		}
		if !greedy[1].aborted || greedy[0].aborted || greedy[2].aborted {
			t.Error("not the slowest of who has most was given up")
		}
		// The client has others give way to it, and not clients with their share: its addresses are one network.
		next := b.from("2001:db8::2")
		if !next.grow(100) || !greedy[2].aborted || honest[0].aborted || honest[1].aborted || honest[2].aborted {
			t.Error("a client with its share was given up, or nobody")
		}
		if greedy[1].grow(1) {
			t.Error("what was given up goes on")
		}
		if b.Received(greedy[1].Item) || !b.Received(next.Item) {
			t.Error("what was given up was received, or what was not was not")
		}
		for _, s := range append(greedy, append(honest[:], next)...) {
			b.Release(s.Item)
			b.Release(s.Item)
		}
		if want := NewInbox(800); !slices.Equal(b.sums(), want.sums()) {
			t.Errorf("in the end there are %+v, want %+v", b.sums(), want.sums())
		}
	})
}

// What does not get on is given up after a second. Items that have come in part do not wait for each other,
// and those that have not begun wait for those that have, and for those in use, but not for ever.
func TestInboxWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		took := func() time.Duration {
			defer func() { begun = time.Now() }()
			return time.Since(begun)
		}
		b := NewInbox(80)
		slow, fast := b.from("192.0.2.1"), b.from("192.0.2.1")
		if !slow.grow(40) || !fast.grow(20) || !fast.grow(20) || !slow.aborted || took() != idle {
			t.Fatal("a slow one is not given up, or not in time")
		}
		other := b.from("192.0.2.1")
		if !other.grow(20) {
			t.Fatal("there was room")
		}
		waits := make(chan bool)
		go func() { waits <- fast.grow(20) }()
		synctest.Wait()
		if other.grow(20); !fast.aborted || <-waits || took() != 0 {
			t.Error("two wait for each other")
		}
		b.Received(other.Item)
		late := b.from("192.0.2.1")
		if late.grow(40) || took() != patience {
			t.Error("there is room for a third one, or it does not wait")
		}
		time.AfterFunc(time.Second/4, func() { b.Release(other.Item) })
		if late = b.from("192.0.2.1"); !late.grow(30) || took() != time.Second/4 {
			t.Error("there is no room for a fourth one, or it does not wait")
		}
		b.Release(late.Item)
		early := b.from("192.0.2.1")
		if !b.Grow(early.Item, early.sender, 10, 70) {
			t.Fatal("there was room")
		}
		time.AfterFunc(time.Second/4, func() { b.Release(early.Item) })
		if late = b.from("192.0.2.1"); !b.Grow(late.Item, late.sender, 10, 20) || took() != time.Second/4 {
			t.Error("one that has not begun does not wait for one that has")
		}
	})
}

// Items for which there is no room do not look at all others, and not all that come wait.
func TestInboxWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = queue - queue/shortage
		b := NewInbox(4 * n)
		var all []sent
		for i := range 3 * n {
			s := b.from("192.0.2.1")
			if all = append(all, s); !s.grow(1) || i%2 == 0 && !b.Received(s.Item) {
				t.Fatal("there was room")
			}
		}
		begun, got := time.Now(), make(chan bool)
		for range n {
			s := b.from("192.0.2.1")
			all = append(all, s)
			go func() { got <- s.grow(n) }()
		}
		synctest.Wait()
		other := b.from("192.0.2.2")
		if b.from("192.0.2.1").grow(n) || !other.grow(n/2) || time.Since(begun) != 0 {
			t.Error("one more waits, or another client does")
		}
		for _, s := range all[:3*n] {
			b.Release(s.Item)
		}
		for range n {
			<-got
		}
		for _, s := range append(all, other) {
			if s.asked != 1 {
				t.Fatalf("a client was looked at %d times", s.asked)
			}
		}
	})
}

// What one client announces does not make others wait.
func TestInboxAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewInbox(800)
		var greedy []sent
		for range 8 {
			s := b.from("192.0.2.1")
			if greedy = append(greedy, s); !b.Grow(s.Item, s.sender, 1, 100) {
				t.Fatal("there was room")
			}
		}
		for _, s := range greedy {
			b.Progress(s.Item)
		}
		begun, other := time.Now(), b.from("192.0.2.2")
		if !b.Grow(other.Item, other.sender, 10, 100) || time.Since(begun) != 0 {
			t.Errorf("it got room after %v", time.Since(begun))
		}
	})
}

// Who has waited for long gets room, although others that waited came first, and then sent nothing.
func TestInboxTurns(t *testing.T) {
	for range 100 { // who comes first is chance
		synctest.Test(t, func(t *testing.T) {
			b := NewInbox(800)
			var others sync.WaitGroup
			defer others.Wait()
			for range 18 { // of which 6 have room at a time
				others.Go(func() { b.from("192.0.2.1").grow(100) })
			}
			time.Sleep(idle / 3)
			if honest := b.from("192.0.2.1"); !honest.grow(100) {
				t.Fatal("it was given up")
			}
		})
	}
}
