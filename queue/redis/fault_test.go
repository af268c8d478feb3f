package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/queue"
)

// ledger is what the outside world knows of items: which were accepted, begun and done.
type ledger struct {
	mu       sync.Mutex
	accepted map[string]bool
	unsure   map[string]bool // the push got no answer
	begun    map[string]int
	done     map[string]bool // an Ack was answered
	again    []string        // begun after that
}

// acknowledging notes every Ack that was answered.
type acknowledging struct {
	queue.Store
	ledger *ledger
	mu     sync.Mutex
	items  map[string]string // by token
}

func (a *acknowledging) Lease(ctx context.Context, name string, ask queue.Ask) (queue.Batch, error) {
	b, err := a.Store.Lease(ctx, name, ask)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range b.Leases {
		a.items[l.Token] = string(l.Payload)
	}
	return b, err
}

func (a *acknowledging) Ack(ctx context.Context, name, token string) error {
	err := a.Store.Ack(ctx, name, token)
	if err == nil {
		a.mu.Lock()
		item := a.items[token]
		a.mu.Unlock()
		a.ledger.mu.Lock()
		defer a.ledger.mu.Unlock()
		a.ledger.done[item] = true
	}
	return err
}

// Redis is killed under load and comes back with its file, again and again: all that was
// accepted is done, and nothing of which that was acknowledged is begun again.
func TestRedisIsKilled(t *testing.T) {
	server := testredis.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	declared := map[string]queue.Settings{"jobs": {N: 500, Period: time.Second, Capacity: 100_000, Visibility: 5 * time.Second, MaxTries: 1000, Remember: time.Hour}}
	book := &ledger{accepted: map[string]bool{}, unsure: map[string]bool{}, begun: map[string]int{}, done: map[string]bool{}}
	store := storeOn(t, clientOf(t, server.Addr), declared, Options{Timeout: 300 * time.Millisecond})

	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	handler := func(_ context.Context, l queue.Lease) error {
		book.mu.Lock()
		defer book.mu.Unlock()
		item := string(l.Payload)
		if book.done[item] {
			book.again = append(book.again, item)
		}
		book.begun[item]++
		return nil
	}
	for range 2 {
		noting := &acknowledging{Store: store, ledger: book, items: map[string]string{}}
		all.Go(func() {
			if err := queue.Run(ctx, noting, "jobs", handler, queue.RunOptions{Workers: 4}); err != nil {
				t.Error(err)
			}
		})
	}
	pushing, enough := context.WithCancel(ctx)
	var pushers sync.WaitGroup
	for g := range 3 {
		pushers.Go(func() {
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			for i := 0; pushing.Err() == nil; i++ {
				item := fmt.Sprintf("%d/%d", g, i)
				_, err := store.Push(ctx, "jobs", queue.Work{Payload: []byte(item), ID: item})
				book.mu.Lock()
				if err == nil {
					book.accepted[item] = true
				} else {
					book.unsure[item] = true
				}
				book.mu.Unlock()
				<-pace.C
			}
		})
	}
	count := func(of func() int) int {
		book.mu.Lock()
		defer book.mu.Unlock()
		return of()
	}
	for range 3 {
		done := count(func() int { return len(book.done) })
		eventually(t, "work that is done", func() bool { return count(func() int { return len(book.done) }) > done+100 })
		server.Kill()
		unsure := count(func() int { return len(book.unsure) })
		eventually(t, "trouble", func() bool { return count(func() int { return len(book.unsure) }) > unsure+5 })
		server.Restart()
	}
	done := count(func() int { return len(book.done) })
	eventually(t, "work that is done", func() bool { return count(func() int { return len(book.done) }) > done+100 })
	enough()
	pushers.Wait()
	eventually(t, "an empty queue", func() bool {
		st, err := store.Stats(t.Context(), "jobs")
		return err == nil && st.Length() == 0
	})
	stop()
	all.Wait()
	twice := 0
	for item, n := range book.begun {
		if n > 1 {
			twice++
		}
		if !book.accepted[item] && !book.unsure[item] {
			t.Errorf("%s was never pushed", item)
		}
	}
	for item := range book.accepted {
		if book.begun[item] == 0 {
			t.Errorf("%s was accepted and is lost", item)
		}
	}
	if len(book.again) > 0 {
		t.Errorf("begun again although that they were done was acknowledged: %v", book.again)
	}
	t.Logf("accepted %d, unsure %d, done %d, begun more than once %d", len(book.accepted), len(book.unsure), len(book.done), twice)
}

// A Redis that does not answer is an error within the timeout.
func TestPaused(t *testing.T) {
	server := testredis.Start(t)
	pushAll(t, storeOn(t, clientOf(t, server.Addr), jobs, Options{}), 1)
	client := clientWith(t, rueidis.ClientOption{InitAddress: []string{server.Addr}, ConnWriteTimeout: time.Hour}) // it would wait
	store := storeOn(t, client, jobs, Options{Timeout: 100 * time.Millisecond})
	server.Pause()
	begin := time.Now()
	_, err := store.Push(t.Context(), "jobs", queue.Work{})
	if took := time.Since(begin); !errors.Is(err, queue.ErrUnavailable) || took > 2*time.Minute {
		t.Errorf("%v after %v", err, took)
	}
	if err := store.Ping(t.Context()); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("Ping = %v", err)
	}
	server.Resume()
	eventually(t, "an answer", func() bool { return store.Ping(t.Context()) == nil })
}

func TestFlushedScripts(t *testing.T) {
	server := testredis.Start(t)
	store := storeOn(t, clientOf(t, server.Addr), jobs, Options{})
	for range 3 {
		server.FlushScripts()
		pushAll(t, store, 1)
		server.FlushScripts()
		b := leaseOne(t, store)
		server.FlushScripts()
		if err := store.Ack(t.Context(), "jobs", b.Token); err != nil {
			t.Fatal(err)
		}
	}
}

func leaseOne(t *testing.T, s *Store) queue.Lease {
	t.Helper()
	var got queue.Lease
	eventually(t, "a lease", func() bool {
		b, err := s.Lease(t.Context(), "jobs", queue.Ask{})
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Leases) == 1 {
			got = b.Leases[0]
		}
		return len(b.Leases) == 1
	})
	return got
}

// When Redis has no memory left, a push fails, but existing items can be processed, and
// no script stops halfway.
func TestMemoryIsFull(t *testing.T) {
	server := testredis.Start(t)
	client := clientOf(t, server.Addr)
	store := storeOn(t, client, jobs, Options{})
	pushAll(t, store, 4)
	server.FillMemory()
	if _, err := store.Push(t.Context(), "jobs", queue.Work{}); !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "nothing was changed: redis: OOM") {
		t.Errorf("Push = %v", err)
	}
	ctx := t.Context()
	first, second, third, fourth := leaseOne(t, store), leaseOne(t, store), leaseOne(t, store), leaseOne(t, store)
	_, extendErr := store.Extend(ctx, "jobs", second.Token)
	_, nackErr := store.Nack(ctx, "jobs", third.Token, queue.Failure{Bury: true})
	if err := errors.Join(store.Ack(ctx, "jobs", first.Token), extendErr, nackErr, store.Return(ctx, "jobs", fourth.Token)); err != nil {
		t.Error(err)
	}
	// A lease that ends by itself.
	later := redisNow(server).Add(2 * jobs["jobs"].Visibility)
	st, err := storeOn(t, client, jobs, Options{Clock: func() weir.Micros { return later }}).Stats(ctx, "jobs")
	if want := (queue.Stats{Ready: 2, Dead: 1, Capacity: 10_000, Age: st.Age, Wait: st.Wait}); err != nil || st != want {
		t.Errorf("%+v, %v; want %+v", st, err, want)
	}
	server.FreeMemory()
	pushAll(t, store, 1)
}

// A store whose keys somebody has tampered with goes on with the rest.
func TestByHand(t *testing.T) {
	server := testredis.Start(t)
	store := storeOn(t, clientOf(t, server.Addr), jobs, Options{})
	var numbers []string
	for i := range 6 {
		p, err := store.Push(t.Context(), "jobs", queue.Work{Payload: []byte(strconv.Itoa(i)), ID: strconv.Itoa(i)})
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, fmt.Sprintf("%016d", p.Number))
	}
	server.Do("HDEL", "weir:queue{jobs}:facts", numbers[0])
	server.Do("HDEL", "weir:queue{jobs}:work", numbers[1])
	server.Do("HSET", "weir:queue{jobs}:facts", numbers[2], "nonsense")
	server.Do("ZREM", "weir:queue{jobs}:ready", numbers[3])
	for _, want := range []string{"4", "5"} {
		l := leaseOne(t, store)
		if string(l.Payload) != want {
			t.Errorf("%q was leased, want %s", l.Payload, want)
		}
		if err := store.Ack(t.Context(), "jobs", l.Token); err != nil {
			t.Error(err)
		}
	}
	if st, err := store.Stats(t.Context(), "jobs"); err != nil || st.Length() != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	if p, err := store.Push(t.Context(), "jobs", queue.Work{ID: "3"}); err != nil || p.Duplicate {
		t.Errorf("an ID that leads nowhere: %+v, %v", p, err)
	}
	server.Do("SET", "weir:queue{jobs}:dead", "mine")
	if _, err := store.DeadLetters(t.Context(), "jobs", 0, 1); err == nil || errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("a key of another type: %v", err)
	}
}
