package lease_test

import (
	"context"
	"log"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/lease"
	"github.com/weirhq/weir/store/redis"
)

func Example() {
	ctx := context.Background()
	shared, err := redis.Open("redis://localhost:6379")
	if err != nil {
		log.Fatal(err)
	}
	defer shared.Close()
	store := lease.New(shared, lease.Options{Term: time.Second})
	defer store.Close(ctx) // returns what is not spent

	limiter, err := weir.NewLimiter(store, weir.PerMinute(10_000))
	if err != nil {
		log.Fatal(err)
	}
	if allowed, err := limiter.Allow(ctx, "alice"); err == nil && allowed {
		log.Print("go on")
	}
}
