package envoyrls

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/memory"
)

// hooked is a store in memory between whose calls other things can happen.
type hooked struct {
	weir.HoldStore
	peeked  func()                 // after a peek
	reserve func()                 // before a reservation
	settle  func(used int64) error // before a settlement, which an error keeps from the store
	settled func(used int64) error // after one, whose answer an error takes away
}

func (h *hooked) Peek(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	dst, err := h.HoldStore.Peek(ctx, dst, ops...)
	if h.peeked != nil {
		h.peeked()
	}
	return dst, err
}

func (h *hooked) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	if h.reserve != nil {
		h.reserve()
	}
	return h.HoldStore.Reserve(ctx, dst, r, ops...)
}

func (h *hooked) Settle(ctx context.Context, s weir.Settlement) (weir.Settled, error) {
	if h.settle != nil {
		if err := h.settle(s.Used("", 1)); err != nil {
			return weir.Settled{}, err
		}
	}
	settled, err := h.HoldStore.Settle(ctx, s)
	if h.settled != nil {
		if err := h.settled(s.Used("", 1)); err != nil {
			return weir.Settled{}, err
		}
	}
	return settled, err
}

const twoHolds = `
domain: d
descriptors:
  - {key: user, hold: {id: id, end: {phase: done}}, reserve: 40, rate_limit: {unit: hour, algorithm: sliding_log, requests_per_unit: 100}}
  - {key: org, hold: {id: id, end: {phase: done}}, reserve: 60, rate_limit: {unit: hour, algorithm: sliding_log, requests_per_unit: 100}}
  - {key: pod, hold: {id: id, end: {phase: done}}, reserve: 60, rate_limit: {unit: hour, algorithm: sliding_log, requests_per_unit: 100}}
`

// ask sends requests, and compares the beginnings of the answers.
func ask(t *testing.T, s *Service, want string, descriptors ...string) {
	t.Helper()
	if got := said(s.ShouldRateLimit(t.Context(), request(descriptors...))); !strings.HasPrefix(got, want) {
		t.Errorf("%q: %s, want %s", descriptors, got, want)
	}
}

// Several holds of one request are made one after the other. If another request takes the room for one of them meanwhile, nothing
// stays reserved, whichever it is.
func TestRoomLostBetweenHolds(t *testing.T) {
	for _, lost := range []string{"org", "pod"} {
		store := &hooked{HoldStore: memory.New(memory.Options{})}
		s, other := serviceOn(t, store, twoHolds), serviceOn(t, store.HoldStore, twoHolds)
		made := 0
		store.reserve = func() {
			if made++; made == 2 {
				ask(t, other, "ok | ok 40", lost+"=x,id=other")
			}
		}
		ask(t, s, "over | ", "user=a,id=1", "org=x,id=1", "pod=x,id=1")
		if made < 2 {
			t.Fatalf("%d holds were to be made", made)
		}
		store.reserve = nil
		for key, want := range map[string]string{"user=a": "ok | ok 60", "org=x": "ok | ok 40", "pod=x": "ok | ok 40", lost + "=x": "over"} {
			ask(t, s, want, key+",id=2")
		}
	}
}

// If there is room again after a look has denied several holds, they are made all the same: an estimate without
// a hold would stay charged besides what was used.
func TestRoomFoundBetweenHolds(t *testing.T) {
	store := &hooked{HoldStore: memory.New(memory.Options{})}
	s, other := serviceOn(t, store, twoHolds), serviceOn(t, store.HoldStore, twoHolds)
	ask(t, other, "ok | ok 40", "org=x,id=other")
	peeks := 0
	store.peeked = func() {
		if peeks++; peeks == 1 {
			ask(t, other, "ok", "org=x,id=other,phase=done x1")
		}
	}
	ask(t, s, "ok | ok 60", "user=a,id=1", "org=x,id=1")
	if peeks != 2 {
		t.Errorf("the request was looked at %d times, want 2", peeks)
	}
	ask(t, s, "ok", "user=a,id=1,phase=done x7", "org=x,id=1,phase=done x7")
	ask(t, s, "ok | ok 53 of 100/hour", "user=a,id=2")
	ask(t, s, "ok | ok 32 of 100/hour", "org=x,id=2")
}

// An end whose answer was lost is made again, and nobody knows what it has done. Another end of the same id, which comes first,
// must not take its hold: then one of them would be charged nothing.
func TestEndBesidePendingEnd(t *testing.T) {
	for name, done := range map[string]bool{"the call was lost": false, "the answer was lost": true} {
		t.Run(name, func(t *testing.T) {
			back := make(chan struct{})
			var tried atomic.Int64
			store := &hooked{HoldStore: memory.New(memory.Options{})}
			lost := func(used int64) error {
				if used != 4 {
					return nil
				}
				select {
				case <-back:
					return nil
				default:
					tried.Add(1)
					return errLost
				}
			}
			if done {
				store.settled = lost
			} else {
				store.settle = lost
			}
			s := serviceOn(t, store, twoHolds)
			ask(t, s, "ok | ok 60", "user=a,id=1")
			ask(t, s, "ok", "user=a,id=1,phase=done x4")
			ask(t, s, "ok", "user=a,id=1,phase=done x7")
			close(back)
			s.options.Engine.Close()
			if tried.Load() == 0 {
				t.Error("nothing was lost")
			}
			ask(t, s, "ok | ok 49", "user=a,id=2") // 100 - 4 - 7 - 40
		})
	}
}

// An end whose hold expires before it reaches the store is charged what it says, and does not take the end of another hold of its
// id for its own.
func TestPendingEndOfExpiredHold(t *testing.T) {
	var now, lost atomic.Int64
	now.Store(int64(weir.MicrosOf(time.Now())))
	store := &hooked{HoldStore: memory.New(memory.Options{Clock: func() weir.Micros { return weir.Micros(now.Load()) }})}
	lost.Store(4)
	store.settle = func(used int64) error {
		if used == lost.Load() {
			return errLost
		}
		return nil
	}
	s, other := serviceOn(t, store, twoHolds), serviceOn(t, store.HoldStore, twoHolds)
	ask(t, s, "ok | ok 60", "user=a,id=1")
	now.Add((5 * time.Minute).Microseconds())
	ask(t, s, "ok | ok 20", "user=a,id=1")
	ask(t, s, "ok", "user=a,id=1,phase=done x4")
	now.Add((5*time.Minute + time.Second).Microseconds())
	ask(t, other, "ok", "user=a,id=1,phase=done x7")
	lost.Store(-1)
	s.options.Engine.Close()
	ask(t, s, "ok | ok 9", "user=a,id=2") // 100 - 40, which expired, - 4 - 7 - 40
}

// Two ends of one id that ask for the same hold at the same time, both without an answer: each is made again.
func TestPendingEndsOfOneHold(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	var calls atomic.Int64
	back := make(chan struct{})
	s := serviceOn(t, &hooked{HoldStore: memory.New(memory.Options{}), settle: func(int64) error {
		if n := calls.Add(1); n <= 2 {
			both.Done()
			both.Wait() // neither is known to wait for the store when the other one asks
		}
		select {
		case <-back:
			return nil
		default:
			return errLost
		}
	}}, twoHolds)
	ask(t, s, "ok | ok 60", "user=a,id=1")
	var ends sync.WaitGroup
	for _, used := range []string{"4", "7"} {
		ends.Go(func() { ask(t, s, "ok", "user=a,id=1,phase=done x"+used) })
	}
	ends.Wait()
	close(back)
	s.options.Engine.Close()
	ask(t, s, "ok | ok 49", "user=a,id=2")
}

// stuck is a store that answers no settlement before its timeout.
type stuck struct {
	weir.HoldStore
	asked atomic.Int64 // by requests
}

type requestKey struct{}

func (s *stuck) Timeout() time.Duration { return time.Millisecond }

func (s *stuck) Settle(ctx context.Context, _ weir.Settlement) (weir.Settled, error) {
	if ctx.Value(requestKey{}) == nil {
		return weir.Settled{}, errLost
	}
	s.asked.Add(1)
	ctx, cancel := context.WithTimeout(ctx, s.Timeout())
	defer cancel()
	<-ctx.Done()
	return weir.Settled{}, errors.Join(errLost, ctx.Err())
}

// A request that ends many holds waits for the store no longer than one that ends one.
func TestManyEndsOfOneRequest(t *testing.T) {
	store := &stuck{HoldStore: memory.New(memory.Options{})}
	s := serviceOn(t, store, twoHolds)
	ctx := context.WithValue(t.Context(), requestKey{}, true)
	if got := said(s.ShouldRateLimit(ctx, request("user=a,id=1,phase=done", "org=a,id=1,phase=done", "pod=a,id=1,phase=done"))); !strings.HasPrefix(got, "ok | ok 0") {
		t.Error(got)
	}
	if n := store.asked.Load(); n != 1 {
		t.Errorf("the store was asked %d times, want once, because then the time is over", n)
	}
}
