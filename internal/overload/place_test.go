package overload

import (
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"
)

var alice, bob = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")

// fullOf is a limiter of 10 places that a client has.
func fullOf(t *testing.T, client netip.Addr) (*Limiter, []*Place) {
	l := New(10, 10)
	var places []*Place
	for range 10 {
		p := new(Place)
		if !l.Enter(0, Normal, client, p) {
			t.Fatal("one client does not get all places")
		}
		places = append(places, p)
	}
	return l, places
}

func (l *Limiter) enters(now time.Duration, client netip.Addr) *Place {
	if p := new(Place); l.Enter(now, Normal, client, p) {
		return p
	}
	return nil
}

// A request that waits for its client loses its place to another client, at once if its own has more than
// half of the places, and to anybody if the client is slow. When it goes on, it needs a place again.
func TestPlaceOfAWaitingRequest(t *testing.T) {
	l, places := fullOf(t, alice)
	if l.enters(0, bob) != nil {
		t.Error("a request that does not wait has lost its place")
	}
	places[3].Wait(1)
	if l.enters(1, alice) != nil {
		t.Error("a client takes places from itself")
	}
	got := l.enters(1, bob)
	if got == nil || !places[3].lost || l.Stats().InFlight != 10 {
		t.Fatalf("a request that waits keeps its place; %+v", l.Stats())
	}
	if places[3].Resume(2, 1) {
		t.Error("a request that has lost its place goes on without")
	}
	got.Leave(3, Success)
	begin := 2 * shortage // places are not short any more
	if !places[3].Resume(begin, 1) || places[3].lost {
		t.Error("a request that has lost its place gets no other one")
	}
	places[5].Wait(begin) // a byte now and then is slow, too
	for at := begin; at < begin+slow; at += slow / 10 {
		places[5].Resume(at, 1)
		places[5].Wait(at)
	}
	if l.enters(begin+slow/2, alice) != nil || l.enters(begin+slow, alice) == nil || !places[5].lost {
		t.Error("a slow request keeps its place, or one that is not does not")
	}
	places[6].Wait(begin)
	for at := begin; at <= begin+2*slow; at += slow / 2 {
		places[6].Resume(at, block)
		places[6].Wait(at)
	}
	if l.enters(begin+2*slow, alice) != nil {
		t.Error("a request gets on, and has lost its place")
	}
	for _, p := range places {
		p.Leave(begin+3*slow, Success)
		p.Leave(begin+3*slow, Success)
		p.Resume(begin+3*slow, 0) // by a transport that still reads
	}
	if n := l.Stats().InFlight; n != 1 {
		t.Errorf("%d are in flight in the end, want 1", n)
	}
}

// A response goes on without a place, and takes one when there is one.
func TestPlaceOfAResponse(t *testing.T) {
	l, places := fullOf(t, alice)
	places[0].Wait(1)
	places[0].Answer() // the request was still being sent
	if l.enters(1, bob) != nil {
		t.Error("a response that is not waited for has lost its place")
	}
	places[0].Wait(1)
	got := l.enters(1, bob)
	if got == nil || !places[0].Resume(2, 1) || !places[0].lost {
		t.Error("a response does not go on without a place, or has kept it")
	}
	got.Leave(3, Success)
	denied := l.Stats().Denied
	if places[0].Wait(4); !places[0].Resume(5, 1) || !places[0].lost || l.Stats().Denied != denied {
		t.Errorf("a response takes a place while its client has its share, or counts as denied; %+v", l.Stats())
	}
	places[0].Wait(2 * shortage)
	if !places[0].Resume(2*shortage, 1) || places[0].lost || l.Stats().InFlight != 10 {
		t.Errorf("a response takes no place; %+v", l.Stats())
	}
}

// What a client has beyond half of the places does not count for others, as long as the maximum allows it.
func TestPlacesBeyondHalf(t *testing.T) {
	l := New(1, 1000)
	home := netip.MustParseAddr("2001:db8::") // a network is one client
	for l.enters(0, home) != nil {
		home = home.Next()
	}
	if n := l.Stats().InFlight; n != start {
		t.Fatalf("one client has %d of %d places", n, start)
	}
	for l.enters(1, bob) != nil {
	}
	if n := l.Stats().InFlight; n != start+start/2 {
		t.Errorf("with another one, %d are in flight", n)
	}
}

// When another client finds no place, a client that has half of them gets no more for a while.
func TestPlacesAreShared(t *testing.T) {
	l, places := fullOf(t, alice)
	if l.enters(0, bob) != nil {
		t.Fatal("there was a place")
	}
	for _, p := range places[:5] {
		p.Leave(1, Success)
	}
	if l.enters(2, alice) != nil {
		t.Error("a client gets more than half while places are short")
	}
	critical := new(Place)
	if !l.Enter(2, Critical, alice, critical) {
		t.Error("a shortage for normal requests denies a critical one")
	}
	critical.Leave(2, Success)
	for range 5 {
		if l.enters(3, bob) == nil {
			t.Error("the other client gets no place")
		}
	}
	places[5].Leave(4, Success)
	if l.enters(5+shortage, alice) == nil {
		t.Error("a client gets no place although places are not short")
	}
}

// A request whose body and response go on at the same time takes one place, not two.
func TestPlaceOfTwoThatResume(t *testing.T) {
	l, places := fullOf(t, alice)
	places[0].Wait(1)
	l.enters(1, bob).Leave(2, Success)
	places[1].Leave(2, Success)
	moved := func() int {
		places[0].mu.Lock()
		defer places[0].mu.Unlock()
		return places[0].moved
	}
	var both sync.WaitGroup
	l.mu.Lock()
	for range 2 {
		both.Go(func() { places[0].Resume(2*shortage, 1) })
	}
	for moved() < 2 {
		runtime.Gosched()
	}
	l.mu.Unlock()
	if both.Wait(); l.Stats().InFlight != 9 {
		t.Errorf("%d are in flight, want 9", l.Stats().InFlight)
	}
}

// However many places are taken, a request without one looks at few of them; those that come after it find
// the place of a slow client soon.
func TestLooksAreBounded(t *testing.T) {
	const all = 8 * maxLooks
	l, client := New(all, all), alice
	var places []*Place
	for range all {
		client = client.Next()
		places = append(places, l.enters(0, client))
	}
	places[all/2].Wait(1)
	tries := 1
	for l.enters(1+slow, bob) == nil && tries < all {
		if hand := l.hand; hand != tries*maxLooks {
			t.Fatalf("%d requests have looked at %d places", tries, hand)
		}
		tries++
	}
	if tries > all/maxLooks || !places[all/2].lost {
		t.Errorf("the place of a slow client was found by request %d", tries)
	}
	for _, p := range places {
		p.Leave(2+slow, Success)
	}
	if len(l.taken) != 1 || len(l.clients) != 1 || len(l.byAddress) != 1 {
		t.Errorf("in the end, %d places of %d clients are left, want 1", len(l.taken), len(l.clients))
	}
}
