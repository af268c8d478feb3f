package weir_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/memory"
)

// One limit for every client, in this process.
func ExampleNewLimiter() {
	store := memory.New(memory.Options{})
	limiter, err := weir.NewLimiter(store, weir.MustParseLimit("3/1h"))
	if err != nil {
		panic(err)
	}
	for range 4 {
		d, err := limiter.Take(context.Background(), "alice", 1)
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Allowed, d.Remaining, d.RetryAfter.Round(time.Minute))
	}
	// Output:
	// true 2 0s
	// true 1 0s
	// true 0 0s
	// false 0 20m0s
}

// A batch waits until there is room for all of it, and no longer than its context.
func ExampleLimiter_WaitN() {
	limiter, err := weir.NewLimiter(memory.New(memory.Options{}), weir.MustParseLimit("100/1s"))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(limiter.WaitN(ctx, "alice", 80))
	fmt.Println(limiter.WaitN(ctx, "alice", 40)) // after about 0.2 s
	fmt.Println(limiter.WaitN(ctx, "alice", 101))
	// Output:
	// <nil>
	// <nil>
	// weir: cost: 101 units exceed this limit; request at most 100 at once
}

// Several limits of one request are charged all or none: the day does not pay
// for what the hour denies.
func ExampleStore() {
	store := memory.New(memory.Options{})
	perHour := weir.MustCompile("sliding_log 3/1h")
	perDay := weir.MustCompile("sliding_log 20/1d")
	for range 5 {
		decisions, err := store.Take(context.Background(), nil,
			weir.Op{Key: "alice", Limit: perHour, Cost: 1},
			weir.Op{Key: "alice", Limit: perDay, Cost: 1})
		if err != nil {
			panic(err)
		}
		fmt.Println(weir.Allowed(decisions), decisions[1].Remaining)
	}
	// Output:
	// true 19
	// true 18
	// true 17
	// false 17
	// false 17
}

// Every time is an argument, so a decision can be computed for any instant.
func ExampleOp_Decide() {
	op := weir.Op{Limit: weir.MustCompile("sliding_window 100/60s"), Cost: 80}
	minute := weir.Micros(60_000_000)
	state, d := op.Decide(weir.State{}, nil, 10*minute)
	fmt.Println(d.Allowed, d.Remaining)

	op.Cost = 1
	_, d = op.Decide(state, nil, 11*minute+minute/4)
	fmt.Println(d.Allowed, d.Remaining)
	// Output:
	// true 20
	// true 39
}
