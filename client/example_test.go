package client_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/client"
	"github.com/weirhq/weir/counter"
	countermemory "github.com/weirhq/weir/counter/memory"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/server/grpcapi"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
	"google.golang.org/grpc"
)

// timeout is for a busy machine.
const timeout = time.Minute

func Example() {
	address, stop := serve(`
rules:
  - {id: login, match: {path: /api/login}, key: ip, algorithm: sliding_log, limit: 2/1m, deny: {message: too many logins}}
`)
	defer stop()

	weir, err := client.New(client.Options{
		Address:   address, // such as 127.0.0.1:8081
		Timeout:   timeout, // default 100 ms
		OnFailure: client.Open,
	})
	if err != nil {
		panic(err)
	}
	defer weir.Close()
	for range 3 {
		v, err := weir.Check(context.Background(), &client.Request{
			IP:   netip.MustParseAddr("198.51.100.7"),
			Path: "/api/login",
		})
		if err != nil {
			panic(err)
		}
		fmt.Println(v.Allowed, v.Remaining, v.Status, v.Message, v.RetryAfter.Round(time.Minute))
	}
	// Output:
	// true 1 0  0s
	// true 0 0  0s
	// false 0 429 too many logins 1m0s
}

// An unavailable service is not an error.
func Example_away() {
	address, stop := serve("rules: []")
	stop()

	weir, err := client.New(client.Options{Address: address, OnFailure: client.Closed})
	if err != nil {
		panic(err)
	}
	defer weir.Close()
	v, err := weir.Check(context.Background(), &client.Request{User: "alice"})
	if err != nil {
		panic(err)
	}
	fmt.Println(v.Allowed, v.Degraded, v.Status, v.RetryAfter)
	fmt.Println(v.Err != nil)
	// Output:
	// false true 503 5s
	// true
}

func ExampleClient_CheckMany() {
	address, stop := serve("rules: [{id: api, key: user, limit: 10/1m}]")
	defer stop()

	weir, err := client.New(client.Options{Address: address, Timeout: timeout})
	if err != nil {
		panic(err)
	}
	defer weir.Close()
	verdicts, err := weir.CheckMany(context.Background(), []*client.Request{
		{User: "alice", Cost: 4},
		{User: "bob"},
		{User: "alice", Cost: 4},
	})
	if err != nil {
		panic(err)
	}
	for _, v := range verdicts {
		fmt.Println(v.Allowed, v.Remaining)
	}
	// Output:
	// true 6
	// true 9
	// true 2
}

func ExampleClient_Reserve() {
	address, stop := serve("rules: [{id: tokens, key: user, algorithm: sliding_log, limit: 1000/1h, unit: tokens}]")
	defer stop()

	weir, err := client.New(client.Options{Address: address, Timeout: timeout})
	if err != nil {
		panic(err)
	}
	defer weir.Close()
	request := &client.Request{User: "alice", Costs: map[string]int64{"tokens": 700}} // an estimate
	hold, v, err := weir.Reserve(context.Background(), request, time.Minute)
	if err != nil {
		panic(err)
	}
	fmt.Println(v.Allowed, v.Remaining)
	// … do the work …
	if _, err := hold.SettleUnits(context.Background(), map[string]int64{"tokens": 512}); err != nil {
		panic(err)
	}
	v, err = weir.Peek(context.Background(), request)
	if err != nil {
		panic(err)
	}
	fmt.Println(v.Remaining)
	// Output:
	// true 300
	// 488
}

func ExampleClient_Counters() {
	address, stop := serve("rules: []")
	defer stop()

	weir, err := client.New(client.Options{Address: address, Timeout: timeout})
	if err != nil {
		panic(err)
	}
	defer weir.Close()
	ctx, counters := context.Background(), weir.Counters()
	views := counter.Key{Name: "views", Window: counter.Day}
	users := counter.Key{Name: "users", Window: counter.Month, Distinct: true}
	for _, user := range []string{"alice", "bob", "alice"} {
		values, err := counters.Add(ctx, counter.Delta{Key: views, By: counter.One}, counter.Delta{Key: users, Members: []string{user}})
		if err != nil {
			panic(err)
		}
		fmt.Println(values)
	}
	days, err := counters.History(ctx, 7, views)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(days[0]), days[0][6].Amount)
	// Output:
	// [1 1]
	// [2 2]
	// [3 2]
	// 7 3
}

func ExampleCounters_Distributions() {
	address, stop := serve("rules: []")
	defer stop()

	weir, err := client.New(client.Options{Address: address, Timeout: timeout})
	if err != nil {
		panic(err)
	}
	defer weir.Close()
	ctx, counters := context.Background(), weir.Counters()
	checkout := counter.Key{Name: "checkout_ms"}
	values := []counter.Amount{counter.Whole(12), counter.Whole(14), counter.Whole(180)}
	if err := counters.Observe(ctx, counter.Sample{Key: checkout, Values: values}); err != nil {
		panic(err)
	}
	all, err := counters.Distributions(ctx, 1, checkout)
	if err != nil {
		panic(err)
	}
	fmt.Println(all[0].Merged.Count, all[0].Merged.P50, all[0].Merged.Max)
	// Output:
	// 3 14.024704 180
}

// serve starts a service with these rules.
func serve(source string) (address string, stop func()) {
	set, err := rule.Usable("", []byte(source))
	if err != nil {
		panic(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		panic(err)
	}
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{})})
	if err != nil {
		panic(err)
	}
	e.Install(table, 1)
	api, err := grpcapi.New(grpcapi.Options{Service: manage.Service{Engine: e, Rules: struct{ repo.Repository }{}, Counters: countermemory.New(countermemory.Options{Clock: noon})}})
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(api.ServerOptions()...)
	api.Register(server)
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go server.Serve(listen)
	return listen.Addr().String(), server.Stop
}

// noon is a time that stands still, so that no window ends.
func noon() weir.Micros {
	return weir.MicrosOf(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
}
