package client_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/weirhq/weir/client"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/internal/server/grpcapi"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
	"google.golang.org/grpc"
)

func Example() {
	address, stop := serve(`
rules:
  - {id: login, match: {path: /api/login}, key: ip, algorithm: sliding_log, limit: 2/1m, deny: {message: too many logins}}
`)
	defer stop()

	weir, err := client.New(client.Options{
		Address:   address, // such as 127.0.0.1:8081
		Timeout:   time.Second,
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

	weir, err := client.New(client.Options{Address: address, Timeout: time.Second})
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

	weir, err := client.New(client.Options{Address: address, Timeout: time.Second})
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
	api, err := grpcapi.New(grpcapi.Options{Service: manage.Service{Engine: e, Rules: struct{ repo.Repository }{}}})
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
