package redis

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/queue"
)

func keysIn(server *testredis.Server) []string {
	return slices.Sorted(slices.Values(strings.Fields(server.Do("KEYS", "*"))))
}

func ttl(t *testing.T, server *testredis.Server, key string) time.Duration {
	t.Helper()
	ms, err := strconv.ParseInt(server.Do("PTTL", key), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ms) * time.Millisecond
}

// Work has no time to live; what is left of an empty queue has.
func TestKeysAndExpiry(t *testing.T) {
	server := testredis.Start(t)
	store := storeOn(t, clientOf(t, server.Addr), map[string]queue.Settings{
		"jobs": {N: 1, Period: 3 * time.Hour, Remember: time.Minute},
	}, Options{Prefix: "shop:"})
	ctx := t.Context()
	const name = "shop:queue{jobs}:"
	want := func(when string, keys ...string) {
		t.Helper()
		for i := range keys {
			keys[i] = name + keys[i]
		}
		if got := keysIn(server); !slices.Equal(got, keys) {
			t.Errorf("%s: %v, want %v", when, got, keys)
		}
	}
	if _, err := store.Stats(ctx, "jobs"); err != nil {
		t.Fatal(err)
	}
	want("of a queue that was only looked at")
	place, err := store.Push(ctx, "jobs", queue.Work{ID: "a", Payload: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	want("of one item", "facts", "ids", "meta", "ready", "work")
	for _, key := range keysIn(server) {
		if d := ttl(t, server, key); d != -time.Millisecond {
			t.Errorf("%s has %v to live", key, d)
		}
	}
	b, err := store.Lease(ctx, "jobs", queue.Ask{})
	if err != nil || len(b.Leases) != 1 || b.Leases[0].Number != place.Number {
		t.Fatal(b, err)
	}
	want("of a leased item", "facts", "ids", "leased", "meta", "work")
	begin := time.Now()
	if err := store.Ack(ctx, "jobs", b.Leases[0].Token); err != nil {
		t.Fatal(err)
	}
	want("when it is done", "done", "meta")
	if d := ttl(t, server, name+"done"); d < time.Minute || d > 3*time.Minute {
		t.Errorf("IDs have %v to live", d)
	}
	// As long as the pace needs, or an hour.
	if d := ttl(t, server, name+"meta"); d+time.Since(begin) < 3*time.Hour || d > 3*time.Hour+2*time.Second {
		t.Errorf("the pace has %v to live", d)
	}
	if _, err := store.Push(ctx, "jobs", queue.Work{}); err != nil {
		t.Fatal(err)
	}
	if d := ttl(t, server, name+"meta"); d != -time.Millisecond {
		t.Errorf("with work again, the pace has %v to live", d)
	}
}

// Who may not publish has workers that poll, and no errors.
func TestWithoutPublish(t *testing.T) {
	server := testredis.Start(t)
	server.Do("ACL", "SETUSER", "default", "resetchannels")
	store := storeOn(t, clientOf(t, server.Addr), jobs, Options{})
	pushAll(t, store, 1)
	if err := store.Ack(t.Context(), "jobs", leaseOne(t, store).Token); err != nil {
		t.Error(err)
	}
}

// Two processes that disagree about the pace keep to the slower one's releases and do not
// stop each other.
func TestAnotherRate(t *testing.T) {
	client := clientOf(t, testredis.Start(t).Addr)
	var clock fake
	clock.Set(1_767_268_807_000_000)
	at := func(n int64) *Store {
		return storeOn(t, client, map[string]queue.Settings{"jobs": {N: n, Period: time.Second}}, Options{Clock: clock.Now})
	}
	three, seven := at(3), at(7)
	pushAll(t, three, 5)
	wait := func(s *Store, leases int, want time.Duration) {
		t.Helper()
		b, err := s.Lease(t.Context(), "jobs", queue.Ask{})
		if err != nil || len(b.Leases) != leases || b.Wait != want {
			t.Errorf("%d leases and a wait of %v, %v; want %d and %v", len(b.Leases), b.Wait, err, leases, want)
		}
	}
	wait(three, 1, 333_334*time.Microsecond)
	wait(seven, 0, 333_334*time.Microsecond)
	clock.Set(clock.Now() + 333_334)
	wait(seven, 1, 142_858*time.Microsecond)
	wait(three, 0, 142_858*time.Microsecond)
}

func TestOptionsAreChecked(t *testing.T) {
	client := clientOf(t, testredis.Start(t).Addr)
	for name, f := range map[string]func() error{
		"client":  func() error { _, err := New(nil, jobs, Options{}); return err },
		"Prefix":  func() error { _, err := New(client, jobs, Options{Prefix: "{weir}:"}); return err },
		"Timeout": func() error { _, err := New(client, jobs, Options{Timeout: -1}); return err },
		"name": func() error {
			_, err := New(client, map[string]queue.Settings{"{": jobs["jobs"]}, Options{})
			return err
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// In a cluster all keys of a queue are on one slot, and workers are woken.
func TestCluster(t *testing.T) {
	cluster := testredis.StartSteadyCluster(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: cluster.Addrs, DisableCache: true, DisableRetry: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	declared := map[string]queue.Settings{}
	for _, name := range []string{"jobs", "mail", "pay", "x"} {
		declared[name] = queue.Settings{N: 1000, Period: time.Second}
	}
	store := storeOn(t, client, declared, Options{})
	done := make(chan string)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error)
	for name := range declared {
		go func() {
			ended <- queue.Run(ctx, store, name, func(_ context.Context, l queue.Lease) error {
				done <- name + string(l.Payload)
				return nil
			}, queue.RunOptions{Report: func(err error) { t.Log(err) }})
		}()
	}
	for name := range declared {
		for i := range 3 {
			if _, err := store.Push(ctx, name, queue.Work{Payload: []byte(strconv.Itoa(i))}); err != nil {
				t.Fatal(err)
			}
			if got := <-done; got != name+strconv.Itoa(i) {
				t.Errorf("%s was done", got)
			}
		}
	}
	stop()
	for range declared {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
