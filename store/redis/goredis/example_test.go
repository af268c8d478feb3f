package goredis_test

import (
	"context"
	"fmt"
	"log"

	client "github.com/redis/go-redis/v9"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/redis"
	"github.com/weirhq/weir/store/redis/goredis"
)

// A program that has a go-redis client passes it to the store, so both share its connections.
func Example() {
	// The client that the program already has.
	rdb := client.NewClient(&client.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	defer rdb.Close()
	store, err := goredis.New(rdb, redis.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	limiter, err := weir.NewLimiter(store, weir.PerMinute(100))
	if err != nil {
		log.Fatal(err)
	}
	allowed, err := limiter.Allow(context.Background(), "alice")
	fmt.Println(allowed, err)
}
