package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/store/redis"
)

// It says which requests ask Redis all the same: those that take a place.
func TestBound(t *testing.T) {
	path := file(t, "rules.yaml", `
rules:
  - {id: plain, key: user, limit: 1000/1m, lease: 1s}
  - {id: place, key: user, limit: 1000/1m, concurrency: 3, lease: 1s}
  - {id: money, key: user, limit: 20usd/day, tokens: {price: usd}, lease: 1s}
  - {id: failures, key: user, limit: 1000/1m, count: {status: [4xx]}, lease: 1s}
`)
	on := func(args ...string) outcome {
		return command(t, "", append([]string{"bound", path, "--instances", "4", "--rate", "500"}, args...)...)
	}
	on().want(t, 0, `(?s)\nplain +- +token_bucket 1000/1m lease 1s +yes +0 +\d+ .*\nplace +- +token_bucket 1000/1m lease 1s +no +0 +0 +0 +0 +500 .*\nplace +- +3 in flight +no .*`+
		`\nmoney +- +fixed_window 20usd/day zone UTC lease 1s +yes .*\nfailures .* yes .*`, "")
	on("--output", "json").want(t, 0, `(?s)"rule": "money".*"limit": "fixed_window 20000000/1d zone UTC lease 1s",\s+"leased": true,`, "")
}

// What weir bound takes for the bytes of a call is within a quarter of what Redis counts.
func TestBytesOfCalls(t *testing.T) {
	server := testredis.Start(t)
	client := testkit.Must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, DisableCache: true}))(t)
	t.Cleanup(client.Close)
	store := testkit.Must(redis.New(client, redis.Options{Timeout: time.Minute}))(t)
	t.Cleanup(func() { store.Close() })
	limit := weir.MustCompile("sliding_window 1000000/1h")
	ctx := context.Background()
	bytes := func() (n int64) {
		info := testkit.Must(client.Do(ctx, client.B().Info().Section("stats").Build()).ToString())(t)
		for _, field := range regexp.MustCompile(`total_net_(?:in|out)put_bytes:(\d+)`).FindAllStringSubmatch(info, -1) {
			n += testkit.Must(strconv.ParseInt(field[1], 10, 64))(t)
		}
		return n
	}
	overhead := bytes()
	overhead = bytes() - overhead
	each := func(do func(i int64)) int64 {
		i := int64(0)
		calls := func(n int64) {
			for range n {
				i++
				do(i)
			}
		}
		calls(50) // the format
		for len(testkit.Must(client.Do(ctx, client.B().FunctionList().Build()).ToArray())(t)) == 0 {
			calls(1) // with scripts, until the store has loaded its library
		}
		calls(50)
		start := bytes()
		calls(200)
		return (bytes() - start - overhead) / 200
	}
	message := each(func(i int64) {
		testkit.Must(store.Lease(ctx, nil, weir.LeaseOp{
			Op: weir.Op{Key: "user:a-client-with-a-key-000", Limit: limit}, ID: weir.LeaseID{1}, Seq: i, Spent: 10 * i, Charged: 10 * (i - 1), Keep: 10 * i, Want: 20, Term: time.Second,
		}))(t)
	})
	check := each(func(i int64) {
		testkit.Must(store.Take(ctx, nil, weir.Op{Key: fmt.Sprintf("user:a-client-with-a-key-%03d", i), Limit: limit, Cost: 1}))(t)
	})
	if check < bytesOfCheck*3/4 || check > bytesOfCheck*5/4 || message < bytesOfMessage*3/4 || message > bytesOfMessage*5/4 {
		t.Errorf("a check has %d bytes, a message %d", check, message)
	}
}
