package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/lease"
	"github.com/weirhq/weir/store/memory"
)

// Units on lease are not used, for thresholds and statistics.
func TestUsedBesideLeases(t *testing.T) {
	r := Result{Rule: &rule.Entry{Rule: &rule.Rule{Warn: []int{50, 80}}}, Asked: true, Leave: 5, Decision: weir.Decision{Limit: 100, Remaining: 15, Leased: 20}}
	if used, warning := r.Used(), r.Warning(); used != 60 || warning != 50 {
		t.Errorf("%d used, and a warning of %d %%", used, warning)
	}
}

// granting grants whatever is wanted, as a store that may have a timeout.
type granting struct {
	*memory.Store
	peeked func()
}

// Peek takes a while, and denies.
func (g granting) Peek(_ context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	g.peeked()
	return append(dst, make([]weir.Decision, len(ops))...), nil
}

func (granting) Timeout() time.Duration { return time.Second }

func (granting) Lease(_ context.Context, dst []weir.LeaseAnswer, ops ...weir.LeaseOp) ([]weir.LeaseAnswer, error) {
	for _, op := range ops {
		d := weir.Decision{Allowed: true, Limit: 1_000_000, Remaining: 1_000_000}
		dst = append(dst, weir.LeaseAnswer{Decision: d, Granted: op.Keep + op.Want, Charged: op.Spent})
	}
	return dst, nil
}

// One reading tells when a check begins and whether its units are still on lease.
func TestReadsTheClockOfLeasesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		var suspended time.Duration
		start := time.Now()
		s := lease.New(granting{memory.New(memory.Options{}), func() { suspended += time.Hour }}, lease.Options{Clock: func() (time.Time, time.Duration) {
			reads.Add(1)
			return time.Now().Add(suspended), time.Since(start)
		}})
		e, err := New(Options{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { e.Close(); _ = s.Close(context.Background()) }()
		if err := e.Load("rules.json", []byte(`{"rules": [{"id": "a", "key": "user", "limit": "1000000/1h"}]}`)); err != nil {
			t.Fatal(err)
		}
		var v Verdict
		check := func() (local, read int64) {
			synctest.Wait()
			before, had := s.Stats().Local, reads.Load()
			if err := e.Check(t.Context(), &rule.Request{User: "alice"}, &v); err != nil || !v.Allowed || v.Degraded != nil {
				t.Fatal(err, v.Degraded)
			}
			read = reads.Load() - had
			return s.Stats().Local - before, read
		}
		lease := func() (read int64) {
			for range 10 {
				if local, read := check(); local == 1 {
					return read
				}
			}
			t.Fatal("no units are leased")
			return 0
		}
		if read := lease(); read != 1 {
			t.Errorf("a check has read the clock %d times", read)
		}
		gate, err := NewGate(e, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		local := s.Stats().Local
		if _, err := gate.Deny(t.Context(), &rule.Request{User: "alice"}, &v, new(Denial)); err != nil || !v.Allowed || s.Stats().Local != local {
			t.Errorf("a request that was looked at has spent units whose lease ended meanwhile: %v, %+v", err, v.Results)
		}
		lease()
		suspended += time.Hour
		if local, _ := check(); local != 0 {
			t.Error("a check has spent units whose lease ended while the machine was suspended")
		}
	})
}

// askedHolds counts the reservations and settlements that a store is asked for.
type askedHolds struct {
	granting
	calls *atomic.Int64
	fail  *atomic.Int64 // so many settlements
}

func (a askedHolds) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	a.calls.Add(1)
	return a.granting.Reserve(ctx, dst, r, ops...)
}

func (a askedHolds) Settle(ctx context.Context, s weir.Settlement) (weir.Settled, error) {
	a.calls.Add(1)
	if a.fail != nil && a.fail.Add(-1) >= 0 {
		return weir.Settled{}, errors.New("the store is unavailable")
	}
	return a.granting.Settle(ctx, s)
}

// A request that this process serves from begin to end reserves and settles leased units. A reservation that others may settle
// asks the store.
func TestServesOnLeasedUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		s := lease.New(askedHolds{granting{memory.New(memory.Options{}), nil}, &calls, nil}, lease.Options{})
		e, err := New(Options{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { e.Close(); _ = s.Close(context.Background()) }()
		if err := e.Load("rules.json", []byte(`{"rules": [{"id": "a", "key": "user", "limit": "1000000/1h", "count": {"status": ["4xx"]}}]}`)); err != nil {
			t.Fatal(err)
		}
		gate, err := NewGate(e, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		req := rule.Request{User: "alice"}
		serve := func(status int) (spent int64) {
			var v Verdict
			before := s.Stats().Leased
			if ok, err := gate.Reserve(t.Context(), &req, time.Minute, &v, new(Denial)); !ok || err != nil || v.Hold == (weir.HoldID{}) || v.Degraded != nil {
				t.Fatal(ok, err, v.Hold, v.Degraded)
			}
			if err := gate.Serve(&req, time.Minute, &v).End(&rule.Response{Status: status}, nil); err != nil {
				t.Fatal(err)
			}
			return before - s.Stats().Leased
		}
		for range 20 {
			serve(404)
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		for status, want := range map[int]int64{200: 0, 404: 1} {
			had := calls.Load()
			if got := serve(status); got != want || calls.Load() != had {
				t.Errorf("status %d: %d spent, want %d, and %d calls of the store", status, got, want, calls.Load()-had)
			}
		}
		had := calls.Load()
		var v Verdict
		if err := e.Reserve(t.Context(), &req, time.Minute, &v); err != nil || calls.Load() != had+1 {
			t.Errorf("%v, %d calls", err, calls.Load()-had)
		}
	})
}

// heardHolds notes what has become of holds.
type heardHolds struct {
	mu    sync.Mutex
	parts map[HoldKind][]string
}

func (o *heardHolds) Observe(*rule.Request, *Verdict, time.Duration) {}

func (o *heardHolds) ObserveHold(event HoldEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range event.Parts {
		o.parts[event.Kind] = append(o.parts[event.Kind], p.Rule)
	}
}

// A request has a hold on leased units, and one of a shadow rule in the store, which fails once when it is settled. Then both are
// settled, and observers hear of both.
func TestSettlesBesideAStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, fail atomic.Int64
		heard := &heardHolds{parts: map[HoldKind][]string{}}
		s := lease.New(askedHolds{granting{memory.New(memory.Options{}), nil}, &calls, &fail}, lease.Options{})
		e, err := New(Options{Store: s, Observers: []Observer{heard}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { e.Close(); _ = s.Close(context.Background()) }()
		if err := e.Load("rules.json", []byte(`{"rules": [{"id": "a", "key": "user", "limit": "1000000/1h", "count": {"status": ["4xx"]}},
			{"id": "b", "key": "ip", "limit": "1000000/1h", "mode": "shadow", "count": {"status": ["4xx"]}}]}`)); err != nil {
			t.Fatal(err)
		}
		gate, err := NewGate(e, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			fail.Store(0)
			if i == 29 {
				clear(heard.parts)
				fail.Store(1)
			}
			req := rule.Request{User: "alice", IP: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})}
			var v Verdict
			if ok, err := gate.Reserve(t.Context(), &req, time.Minute, &v, new(Denial)); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if err := gate.Serve(&req, time.Minute, &v).End(&rule.Response{Status: 404}, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		time.Sleep(time.Second) // a settlement that failed is made again
		synctest.Wait()
		heard.mu.Lock()
		defer heard.mu.Unlock()
		if got := fmt.Sprint(heard.parts[SettledHold]); got != "[a b]" || fail.Load() >= 0 {
			t.Errorf("settled: %v; all: %v", got, heard.parts)
		}
	})
}
