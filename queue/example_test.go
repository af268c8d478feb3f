package queue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirhq/weir/queue"
	"github.com/weirhq/weir/queue/memory"
)

// Work is accepted at once and released at a constant rate.
func ExampleRun() {
	store, err := memory.New(map[string]queue.Settings{
		"mail": {N: 50, Period: time.Second, Capacity: 3},
	}, memory.Options{})
	if err != nil {
		panic(err)
	}
	for _, letter := range []string{"to alice", "to bob", "to carol", "to dave"} {
		place, err := store.Push(context.Background(), "mail", queue.Work{Payload: []byte(letter)})
		if errors.Is(err, queue.ErrFull) {
			fmt.Println("queue full:", letter)
			continue
		}
		if err != nil {
			panic(err)
		}
		fmt.Println("accepted at position", place.Position)
	}

	ctx, stop := context.WithCancel(context.Background())
	var sent int
	err = queue.Run(ctx, store, "mail", func(ctx context.Context, l queue.Lease) error {
		fmt.Println("sent", string(l.Payload))
		if sent++; sent == 3 {
			stop() // a real program would stop on a signal
		}
		return nil
	}, queue.RunOptions{Workers: 1})
	fmt.Println(err)
	// Output:
	// accepted at position 1
	// accepted at position 2
	// accepted at position 3
	// queue full: to dave
	// sent to alice
	// sent to bob
	// sent to carol
	// <nil>
}

// An ID makes it safe to push again after a push without an answer.
func ExampleWork() {
	store, err := memory.New(map[string]queue.Settings{
		"orders": {N: 10, Period: time.Second, Remember: time.Hour},
	}, memory.Options{})
	if err != nil {
		panic(err)
	}
	for range 2 {
		place, err := store.Push(context.Background(), "orders", queue.Work{ID: "order-4711", Payload: []byte("{}")})
		if err != nil {
			panic(err)
		}
		fmt.Println(place.Duplicate, place.State, place.Position)
	}
	// Output:
	// false ready 1
	// true ready 1
}

// A worker that does not use Run leases and acknowledges items itself.
func ExampleStore() {
	store, err := memory.New(map[string]queue.Settings{
		"mail": {N: 1, Period: time.Hour, MaxTries: 1},
	}, memory.Options{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	for _, letter := range []string{"to alice", "to bob"} {
		if _, err := store.Push(ctx, "mail", queue.Work{Payload: []byte(letter)}); err != nil {
			panic(err)
		}
	}

	batch, err := store.Lease(ctx, "mail", queue.Ask{Max: 10})
	if err != nil {
		panic(err)
	}
	for _, l := range batch.Leases {
		fmt.Printf("%s, try %d\n", l.Payload, l.Tries)
		outcome, err := store.Nack(ctx, "mail", l.Token, queue.Failure{Reason: "no such mailbox"})
		if err != nil {
			panic(err)
		}
		fmt.Println("dead:", outcome.Dead)
	}
	fmt.Println("the next in", batch.Wait.Round(time.Minute))

	letters, err := store.DeadLetters(ctx, "mail", 0, 10)
	if err != nil {
		panic(err)
	}
	for _, l := range letters {
		fmt.Printf("%s: %s\n", l.Payload, l.Reason)
		if _, err := store.Requeue(ctx, "mail", l.Number); err != nil {
			panic(err)
		}
	}
	// Output:
	// to alice, try 1
	// dead: true
	// the next in 1h0m0s
	// to alice: no such mailbox
}

// A snapshot keeps the work in memory across a restart.
func Example_restart() {
	queues := map[string]queue.Settings{"mail": {N: 10, Period: time.Second}}
	old, err := memory.New(queues, memory.Options{})
	if err != nil {
		panic(err)
	}
	if _, err := old.Push(context.Background(), "mail", queue.Work{Payload: []byte("to alice")}); err != nil {
		panic(err)
	}
	old.Close() // it accepts no more work, so the snapshot is complete
	var file bytes.Buffer
	if err := old.Snapshot(&file); err != nil {
		panic(err)
	}

	next, err := memory.New(queues, memory.Options{})
	if err != nil {
		panic(err)
	}
	if err := next.Restore(&file); err != nil {
		panic(err)
	}
	stats, err := next.Stats(context.Background(), "mail")
	if err != nil {
		panic(err)
	}
	fmt.Println(stats.Ready)
	// Output:
	// 1
}
