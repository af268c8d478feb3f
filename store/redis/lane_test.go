package redis

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// pause stops Redis from running scripts until the function it returns is called.
func pause(t *testing.T, client rueidis.Client) (resume func()) {
	t.Helper()
	run(t, client, "CLIENT", "PAUSE", "60000", "WRITE")
	return func() { run(t, client, "CLIENT", "UNPAUSE") }
}

func run(t *testing.T, client rueidis.Client, words ...string) string {
	t.Helper()
	answer, err := client.Do(t.Context(), client.B().Arbitrary(words...).Build()).ToAny()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(answer)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s never happened", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// waiting is how many wait for the lane of a store without a cluster.
func (s *Store) waiting() int {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	if l := s.lanes.bySlot[0]; l != nil {
		return len(l.waiting)
	}
	return 0
}

// sending is how many calls are under way.
func (s *Store) sending() int {
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	if l := s.lanes.bySlot[0]; l != nil {
		return l.sending
	}
	return 0
}

// Two calls may be under way. Checks that come meanwhile travel together in the next one, as
// if each had come by itself.
func TestChecksTravelTogether(t *testing.T) {
	client, control := connectTwo(t)
	s := storeOn(t, client, Options{})
	op := weir.Op{Key: "k", Limit: weir.MustCompile("sliding_log 57/1h"), Cost: 1}
	var allowed atomic.Int32
	ask := func() {
		if d, err := s.Take(t.Context(), nil, op); err != nil {
			t.Error(err)
		} else if d[0].Allowed {
			allowed.Add(1)
		}
	}
	ask() // loads the script
	run(t, control, "CONFIG", "RESETSTAT")
	resume := pause(t, control)
	var wg sync.WaitGroup
	for n := range maxSending {
		wg.Go(ask)
		eventually(t, fmt.Sprint("call ", n+1), func() bool { return s.sending() == n+1 && s.waiting() == 0 })
	}
	for range 98 {
		wg.Go(ask)
	}
	eventually(t, "98 who wait", func() bool { return s.waiting() == 98 })
	resume()
	wg.Wait()
	if allowed.Load() != 57 {
		t.Errorf("%d were allowed, want 57", allowed.Load())
	}
	calls := regexp.MustCompile(`cmdstat_fcall:calls=(\d+)`).FindStringSubmatch(run(t, control, "INFO", "commandstats"))
	if len(calls) != 2 || calls[1] != "3" {
		t.Errorf("calls for 100 checks: %q, want 3", calls)
	}
}

// held is a client that keeps the answers to some calls back.
type held struct {
	Client
	mu    sync.Mutex
	gates []chan struct{} // of the next calls
}

func (h *held) Eval(ctx context.Context, command, script string, keys []string, arg string) (string, error) {
	h.mu.Lock()
	var gate chan struct{}
	if len(h.gates) > 0 {
		gate, h.gates = h.gates[0], h.gates[1:]
	}
	h.mu.Unlock()
	answer, err := h.Client.Eval(ctx, command, script, keys, arg)
	if gate != nil {
		<-gate
	}
	return answer, err
}

// open reports whether the next call is not kept back.
func (h *held) open() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.gates) == 0
}

// While one call is under way, a check does not wait for it. While two are, checks wait for
// the one that returns first, and leave in the order in which they came.
func TestWhoLeavesAndWhoWaits(t *testing.T) {
	client := &held{Client: native{redislink.Of(connect(t)), false}}
	s, err := NewOn(client, Options{Timeout: time.Minute, Prefix: t.Name() + ":"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	op := weir.Op{Key: "k", Limit: weir.MustCompile("fixed_window 8/52w"), Cost: 1}
	var wg sync.WaitGroup
	take := func() bool {
		d, err := s.Take(context.Background(), nil, op)
		if err != nil {
			t.Error(err)
			return false
		}
		return d[0].Allowed
	}
	hold := func() (release func()) {
		gate := make(chan struct{})
		client.mu.Lock()
		client.gates = append(client.gates, gate)
		client.mu.Unlock()
		calls := s.sending()
		wg.Go(func() { take() })
		eventually(t, "a call", func() bool { return s.sending() == calls+1 && client.open() })
		return sync.OnceFunc(func() { close(gate) })
	}
	take() // loads the script
	first := hold()
	defer first()
	for range 3 { // in time, although the first call is not back
		if !take() {
			t.Error("a check was denied while another call was under way")
		}
	}
	second := hold()
	defer second()
	got := make([]bool, 4)
	for i := range got {
		wg.Go(func() { got[i] = take() })
		eventually(t, "a check that waits", func() bool { return s.waiting() == i+1 })
	}
	second()
	eventually(t, "a call for those who waited", func() bool { return s.sending() == 1 && s.waiting() == 0 })
	first()
	wg.Wait()
	if want := []bool{true, true, false, false}; !slices.Equal(got, want) {
		t.Errorf("allowed, in the order of arrival: %v, want %v", got, want)
	}
}

// A caller that gives up while calls are in flight returns immediately, delays no
// other, and is not charged if its check was not sent.
func TestCancelledCheckIsNotSent(t *testing.T) {
	client, control := connectTwo(t)
	s := storeOn(t, client, Options{})
	op := weir.Op{Key: "k", Limit: weir.MustCompile("sliding_log 9/1h"), Cost: 1}
	if _, err := s.Take(t.Context(), nil, op); err != nil {
		t.Fatal(err)
	}
	resume := pause(t, control)
	var wg sync.WaitGroup
	for n := range maxSending {
		wg.Go(func() {
			if _, err := s.Take(t.Context(), nil, op); err != nil {
				t.Error(err)
			}
		})
		eventually(t, fmt.Sprint("call ", n+1), func() bool { return s.sending() == n+1 && s.waiting() == 0 })
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := s.Take(ctx, nil, op)
		gone <- err
	}()
	wg.Go(func() {
		if _, err := s.Take(t.Context(), nil, op); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "two who wait", func() bool { return s.waiting() == 2 })
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled one got %v", err)
	}
	resume()
	wg.Wait()
	d, err := s.Peek(t.Context(), nil, op)
	if err != nil || d[0].Remaining != 5 {
		t.Errorf("%+v, %v; want 5 remaining, four were charged", d, err)
	}
}

// A call that Redis does not answer ends after the timeout.
func TestTimeout(t *testing.T) {
	client, control := connectTwo(t)
	s, err := New(client, Options{Timeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	resume := pause(t, control)
	defer resume()
	eventually(t, "a deadline that was exceeded", func() bool {
		_, err := s.Take(t.Context(), nil, weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1})
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, weir.ErrBusy) { // on a busy machine
			t.Fatalf("Take = %v", err)
		}
		return errors.Is(err, context.DeadlineExceeded)
	})
}

// A server that is gone is an error to everyone, and no verdict.
func TestDeadServer(t *testing.T) {
	server := testredis.Start(t)
	s, err := New(clientOf(t, server), Options{Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
	eventually(t, "an answer", func() bool {
		_, err := s.Take(t.Context(), nil, op)
		return err == nil
	})
	server.Kill()
	for range 3 {
		if d, err := s.Take(t.Context(), nil, op); err == nil || len(d) != 0 {
			t.Errorf("Take = %+v, %v", d, err)
		}
		if d, err := s.Peek(t.Context(), nil, op); err == nil || len(d) != 0 {
			t.Errorf("Peek = %+v, %v", d, err)
		}
		if err := s.Reset(t.Context(), op); err == nil {
			t.Error("Reset reported nothing")
		}
	}
}

// A call is bounded, however many wait.
func TestNextIsBounded(t *testing.T) {
	for _, c := range []struct {
		verb  verb
		limit string
		ops   int // of each of a hundred checks
		want  string
	}{
		{take, "5/1m", 10, "[51 49]"}, {refund, "5/1m", 10, "[51 49]"}, {take, "5/1m", maxWeight + 1, fmt.Sprint(slices.Repeat([]int{1}, 100))},
		{take, "sliding_log 5/1m", 10, "[12 12 12 12 12 12 12 12 4]"}, {peek, "sliding_log 5/1m", 64, "[2 2" + strings.Repeat(" 2", 48) + "]"},
		{take, "sliding_buckets 5/1m", 10, "[51 49]"}, {take, "sliding_buckets 5/1h buckets 4095", 1, "[8 8 8 8 8 8 8 8 8 8 8 8 4]"},
		{refund, "sliding_log 1048576/1m", 1, "[8 8 8 8 8 8 8 8 8 8 8 8 4]"}, {extend, "in_flight 1048576/1m", 1, "[8 8 8 8 8 8 8 8 8 8 8 8 4]"},
		{refund, "in_flight 20/1m", 2, "[64 36]"},
	} {
		var l lane
		op := weir.Op{Limit: weir.MustCompile(c.limit)}
		for range 100 {
			check := newCheck(c.verb, 0)
			for range c.ops {
				check.addOp(op, "k")
			}
			l.waiting = append(l.waiting, check)
		}
		var sizes []int
		for batch := l.takeLocked(); len(batch) > 0; batch = l.takeLocked() {
			sizes = append(sizes, len(batch))
		}
		if got := fmt.Sprint(sizes); got != c.want {
			t.Errorf("%d of %s, %d ops each: calls of %s checks, want %s", c.verb, c.limit, c.ops, got, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	if _, err := New(nil, Options{}); err == nil {
		t.Error("New took no client")
	}
	if _, err := New(connect(t), Options{Timeout: -1}); err == nil {
		t.Error("New took a negative timeout")
	}
}

// A timeout holds however long it is, also if an answer takes longer than a client would wait by
// itself.
func TestLongTimeout(t *testing.T) {
	proxy := testredis.NewProxy(t, testredis.Start(t))
	s := open(t, single(proxy.Addr)+"?timeout=1m&dial_timeout=1m")
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1d"), Cost: 1}
	eventually(t, "an answer", func() bool { return s.Ping(t.Context()) == nil })
	proxy.Latency(1500 * time.Millisecond)
	if d, err := s.Take(t.Context(), nil, op); err != nil || d[0].Remaining != 4 {
		t.Errorf("Take = %+v, %v", d, err)
	}
}
