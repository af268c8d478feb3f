// Package library shows common tasks in as few lines as possible. README.md and
// docs/reference/middleware.md quote some of them; a test runs all of them and counts
// their lines.
package library

import (
	"context"
	"net/http"

	"google.golang.org/grpc"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/middleware/grpclimit"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/rule/rulefile"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
)

// PerIP allows 100 requests per minute from each client address.
func PerIP(handler http.Handler) http.Handler {
	return httplimit.PerIP("100/1m")(handler)
}

// PerAPIKey limits by a header.
func PerAPIKey(handler http.Handler) http.Handler {
	return httplimit.PerHeader("X-API-Key", "100/1m")(handler)
}

// PerUser limits by any function of the request.
func PerUser(handler http.Handler, user func(*http.Request) string) http.Handler {
	return httplimit.Per(user, "100/1m")(handler)
}

// PerUserInRedis shares the limits between all instances of a program.
func PerUserInRedis(handler http.Handler, user func(*http.Request) string, url string) (http.Handler, error) {
	store, err := redis.Open(url)
	if err != nil {
		return nil, err
	}
	return httplimit.Options{Store: store}.Per(user, "100/1m")(handler), nil
}

// RulesFromFile limits by the rules in a file, and reloads the file when it changes.
func RulesFromFile(ctx context.Context, handler http.Handler, path string) (http.Handler, error) {
	rules, err := rulefile.Open(ctx, path, engine.Options{})
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(rules, httplimit.Options{})
	if err != nil {
		return nil, err
	}
	return limit.Wrap(handler), nil
}

// GRPC limits the calls of a gRPC server by the rules in a file.
func GRPC(ctx context.Context, path string) (*grpc.Server, error) {
	rules, err := rulefile.Open(ctx, path, engine.Options{})
	if err != nil {
		return nil, err
	}
	limit, err := grpclimit.New(rules, grpclimit.Options{})
	if err != nil {
		return nil, err
	}
	return grpc.NewServer(limit.ServerOptions()...), nil
}

// Keys limits keys that the program chooses, in this process.
func Keys(ctx context.Context, key string) (bool, error) {
	limiter, err := weir.NewLimiter(memory.New(memory.Options{}), weir.PerMinute(100))
	if err != nil {
		return false, err
	}
	return limiter.Allow(ctx, key)
}

// KeysInRedis returns a limiter that all instances of a program share.
func KeysInRedis(url string) (*weir.Limiter, error) {
	store, err := redis.Open(url)
	if err != nil {
		return nil, err
	}
	return weir.NewLimiter(store, weir.PerMinute(100))
}

// Wait waits until 20 units are available.
func Wait(ctx context.Context, limiter *weir.Limiter, key string) error {
	return limiter.WaitN(ctx, key, 20)
}

// UpTo takes as many units as are available, at most 20.
func UpTo(ctx context.Context, limiter *weir.Limiter, key string) (int64, weir.Decision, error) {
	return limiter.TakeUpTo(ctx, key, 20)
}

var perMinute, perDay = weir.MustCompile("100/1m"), weir.MustCompile("1000/1d")

// AllOrNone charges both limits, or neither.
func AllOrNone(ctx context.Context, store weir.Store, key string) (bool, []weir.Decision, error) {
	return weir.TakeAll(ctx, store, weir.Op{Key: key, Limit: perMinute, Cost: 1}, weir.Op{Key: key, Limit: perDay, Cost: 1})
}
