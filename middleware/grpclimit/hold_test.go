package grpclimit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// queue lets one call a second through and holds four more.
const queue = "rules: [{id: slow, key: global, algorithm: leaky_bucket, limit: 1/1s, burst: 5, shape: true}]"

// fake runs a test in fake time, with a server and a client that are in it.
func fake(t *testing.T, rules string, o Options, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o.Logger = quiet()
		test(t, newLiveBench(t, rules, o))
	})
}

// start makes a call in the background.
func (b *bench) start(ctx context.Context) <-chan answer {
	done := make(chan answer, 1)
	go func() { done <- b.call(ctx) }()
	synctest.Wait()
	return done
}

// Calls leave at the rate of the limit, in the order in which they came.
func TestHold(t *testing.T) {
	fake(t, queue, Options{}, func(t *testing.T, b *bench) {
		var all []<-chan answer
		for range 6 {
			all = append(all, b.start(t.Context()))
		}
		if b.Delayed() != 4 {
			t.Errorf("%d are held", b.Delayed())
		}
		if a := <-all[5]; status.Code(a.err) != codes.ResourceExhausted || a.after != 0 || first(a.trailer["retry-after"]) != "1" {
			t.Errorf("beyond the queue: %v after %v, %v", a.err, a.after, a.trailer)
		}
		for i, done := range all[:5] {
			if a := <-done; a.err != nil || a.after != time.Duration(i)*time.Second {
				t.Errorf("call %d: %v after %v", i, a.err, a.after)
			}
		}
		if b.Delayed() != 0 {
			t.Errorf("%d are held in the end", b.Delayed())
		}
	})
}

// A client that leaves gives its place to the next.
func TestLeave(t *testing.T) {
	fake(t, queue, Options{}, func(t *testing.T, b *bench) {
		b.call(t.Context())
		ctx, leave := context.WithCancel(t.Context())
		gone := b.start(ctx)
		if b.Delayed() != 1 {
			t.Fatalf("%d are held", b.Delayed())
		}
		leave()
		if a := <-gone; status.Code(a.err) != codes.Canceled {
			t.Errorf("%v", a.err)
		}
		synctest.Wait()
		if b.Delayed() != 0 {
			t.Errorf("%d are held by those who left", b.Delayed())
		}
		if a := <-b.start(t.Context()); a.err != nil || a.after != time.Second {
			t.Errorf("the next: %v after %v", a.err, a.after)
		}
		if b.served.Load() != 2 {
			t.Errorf("%d served", b.served.Load())
		}
	})
}

// What would outlast its deadline is denied at once, and gives its place back.
func TestDeadline(t *testing.T) {
	fake(t, queue, Options{}, func(t *testing.T, b *bench) {
		b.call(t.Context())
		short, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		held := b.start(short) // 1 s is short enough
		a := <-b.start(short)
		if status.Code(a.err) != codes.ResourceExhausted || a.after != 0 || first(a.trailer["retry-after"]) != "1" {
			t.Errorf("%v after %v: %v", a.err, a.after, a.trailer)
		}
		if got, want := details(a.err), "QUOTA_EXCEEDED weir map[rule:slow]; retry 500ms; quota limit:slow slow: The limit slow is used up; try again in 1 s."; got != want {
			t.Errorf("details %s\nwant    %s", got, want)
		}
		if a := <-b.start(t.Context()); a.err != nil || a.after != 2*time.Second {
			t.Errorf("its place was not given back: %v after %v", a.err, a.after)
		}
		if a := <-held; a.err != nil || a.after != time.Second {
			t.Errorf("%v after %v", a.err, a.after)
		}
	})
}

// At most MaxDelayed calls are delayed; further calls are denied and refunded.
func TestMaxDelayed(t *testing.T) {
	fake(t, queue, Options{MaxDelayed: 1}, func(t *testing.T, b *bench) {
		b.call(t.Context())
		held := b.start(t.Context())
		a := <-b.start(t.Context())
		if status.Code(a.err) != codes.Unavailable || a.after != 0 || first(a.trailer["retry-after"]) != "2" || details(a.err) != "TEMPORARY_REDUCED_CAPACITY weir map[]; retry 2s" {
			t.Errorf("%v after %v: %v %s", a.err, a.after, a.trailer, details(a.err))
		}
		<-held
		if a := <-b.start(t.Context()); a.err != nil || a.after != time.Second {
			t.Errorf("its place was not given back: %v after %v", a.err, a.after)
		}
	})
}

// Messages are held, too: a stream goes on at the rate of the limit.
func TestHoldMessages(t *testing.T) {
	fake(t, queue, Options{PerMessage: true}, func(t *testing.T, b *bench) {
		began := time.Now()
		s := b.open(t, t.Context())
		for i := range 4 {
			if err := exchange(s); err != nil {
				t.Fatal(err)
			}
			if after := time.Since(began); after != time.Duration(i)*time.Second {
				t.Errorf("message %d after %v", i, after)
			}
		}
		end(t, s)
	})
}

// A server that is stopped does not wait for those whom it holds.
func TestHoldEnds(t *testing.T) {
	fake(t, queue, Options{}, func(t *testing.T, b *bench) {
		b.call(t.Context())
		held := b.start(t.Context())
		b.client.Close()
		if a := <-held; a.err == nil || a.after != 0 {
			t.Errorf("%v after %v", a.err, a.after)
		}
		synctest.Wait()
		if b.Delayed() != 0 {
			t.Errorf("%d are held", b.Delayed())
		}
	})
}
