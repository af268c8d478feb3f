package lease

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// network is between a process and the store: it is slow, loses, and doubles. Its clock is that of the bubble.
type network struct {
	*reference
	trip time.Duration

	mu      sync.Mutex
	down    bool
	lose    int // so many answers to messages
	double  bool
	calls   atomic.Int64
	leases  atomic.Int64
	takes   atomic.Int64
	onLease func(ops []weir.LeaseOp)
}

var errDown = errors.New("the store is unavailable")

func (n *network) pass(ctx context.Context) error {
	n.calls.Add(1)
	if err := clock.Sleep(ctx, n.halfTrip()); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return errDown
	}
	return nil
}

func (n *network) halfTrip() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.trip / 2
}

func (n *network) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

func (n *network) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	n.takes.Add(1)
	if err := n.pass(ctx); err != nil {
		return dst, err
	}
	dst, err := n.reference.Take(ctx, dst, ops...)
	time.Sleep(n.halfTrip())
	return dst, err
}

func (n *network) Lease(ctx context.Context, dst []weir.LeaseAnswer, ops ...weir.LeaseOp) ([]weir.LeaseAnswer, error) {
	n.leases.Add(1)
	n.set(func() {
		if n.onLease != nil {
			n.onLease(ops)
		}
	})
	if err := n.pass(ctx); err != nil {
		return dst, err
	}
	answers, err := n.reference.Lease(ctx, nil, ops...)
	time.Sleep(n.halfTrip())
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.double { // it arrives again, later
		n.reference.Lease(ctx, nil, ops...)
	}
	if n.lose > 0 {
		n.lose--
		return dst, errDown
	}
	return append(dst, answers...), err
}

func wallNow() weir.Micros { return weir.MicrosOf(time.Now()) }

// opened is a store with leases on a network. It is closed at the end of the test.
func opened(t *testing.T, trip time.Duration) (*Store, *network) {
	n := &network{reference: newReference(wallNow), trip: trip}
	return holder(t, n, Options{}), n
}

func holder(t *testing.T, n weir.LeaseStore, o Options) *Store {
	s := New(n, o)
	t.Cleanup(func() { s.Close(t.Context()) })
	return s
}

func take(t *testing.T, s weir.Store, key string, limit *weir.Compiled, cost int64) weir.Decision {
	t.Helper()
	return testkit.Must(s.Take(t.Context(), nil, weir.Op{Key: key, Limit: limit, Cost: cost}))(t)[0]
}

// exhaust takes single units of "k" until all are used, also those that a message which is under way brings.
func exhaust(t *testing.T, s *Store, n *network, limit *weir.Compiled) {
	t.Helper()
	for denied := 0; denied < 2; denied++ {
		for take(t, s, "k", limit, 1).Allowed {
			denied = 0
		}
		time.Sleep(2 * n.trip)
		synctest.Wait()
	}
}

// warm takes single units until some are leased, and returns how many it took.
func warm(t *testing.T, s *Store, key string, limit *weir.Compiled) (taken int64) {
	t.Helper()
	for range 100 {
		if !take(t, s, key, limit, 1).Allowed {
			t.Fatal("denied before anything was leased")
		}
		taken++
		synctest.Wait()
		if s.Stats().Leased >= 5 {
			return taken
		}
	}
	t.Fatalf("nothing is leased after 100 requests: %+v", s.Stats())
	return 0
}

var hourly = weir.MustCompile("fixed_window 1000/1h")

func TestDecidesInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		for range 500 {
			if d := take(t, s, "k", hourly, 1); !d.Allowed {
				t.Fatalf("%+v", d)
			}
			time.Sleep(time.Millisecond)
		}
		stats := s.Stats()
		t.Logf("%+v, %d calls", stats, n.calls.Load())
		if stats.Local < 480 || n.takes.Load() != 2 || n.calls.Load() > 25 {
			t.Errorf("%+v, %d calls, %d of them Take", stats, n.calls.Load(), n.takes.Load())
		}
		testkit.OK(t, s.Close(t.Context()))
		a := n.Account("k", hourly)
		if d := testkit.Must(n.Peek(t.Context(), nil, weir.Op{Key: "k", Limit: hourly}))(t)[0]; d.Remaining != 500 || a.Out != 0 {
			t.Errorf("%d remain after 500 of 1000, and %d are on lease", d.Remaining, a.Out)
		}
	})
}
