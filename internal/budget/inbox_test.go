package budget

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// sender is a client whose items may be given up.
type sender struct {
	client  netip.Addr
	aborted bool
}

func (s *sender) Client() netip.Addr { return s.client }
func (s *sender) Abort()             { s.aborted = true }

type sent struct {
	*sender
	*Item
	in *Inbox
}

func (b *Inbox) from(client string) sent {
	return sent{&sender{client: netip.MustParseAddr(client)}, new(Item), b}
}

func (s sent) grow(n int64) bool { return s.in.Grow(s.Item, s.sender, n, 0) }

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
		if b.Free() != 800 || b.first != nil || b.last != nil || b.inUse != 0 {
			t.Errorf("%d of 800 are free in the end", b.Free())
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
