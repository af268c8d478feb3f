// Package goredis keeps usage in Redis with an existing go-redis client.
//
// It is a separate module, so that only its users download go-redis. If your program
// has no client, use package redis alone: its client is faster, and connects to a Redis
// that moves or starts later.
package goredis

import (
	"context"
	"errors"
	"fmt"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/weirhq/weir/store/redis"
)

// New returns a store that uses the client: a [goredis.Client], with or without
// Sentinel, or a [goredis.ClusterClient]. The caller closes the client, after the
// store.
//
// Whatever the client's settings are, the store answers within its own timeout, and a
// request that may have been charged is not sent again. Set ContextTimeoutEnabled
// nevertheless. Without it every call needs a goroutine, and a call that timed out
// occupies a connection of the client until ReadTimeout has passed.
func New(client goredis.UniversalClient, o redis.Options) (*redis.Store, error) {
	a := adapter{client: client}
	switch c := client.(type) {
	case nil:
		return nil, errors.New("goredis: New requires a client; create one with goredis.NewClient")
	case *goredis.Client:
		a.heedsContext = c.Options().ContextTimeoutEnabled
	case *goredis.ClusterClient:
		a.cluster, a.heedsContext = true, c.Options().ContextTimeoutEnabled
	default:
		return nil, fmt.Errorf("goredis: a %T does not tell on which server a key is; use a Client or a ClusterClient", client)
	}
	return redis.NewOn(a, o)
}

// adapter is a client as the store wants it.
type adapter struct {
	client       goredis.UniversalClient
	cluster      bool
	heedsContext bool
}

// Cluster implements redis.Client.
func (a adapter) Cluster() bool { return a.cluster }

// Eval implements redis.Client.
func (a adapter) Eval(ctx context.Context, command, script string, keys []string, arg string) (string, error) {
	args := make([]any, 0, 4+len(keys))
	args = append(args, command, script, len(keys))
	for _, key := range keys {
		args = append(args, key)
	}
	cmd := goredis.NewStringCmd(ctx, append(args, arg)...)
	if err := a.within(ctx, func() error { return a.client.Process(ctx, once{cmd}) }); err != nil {
		return "", err
	}
	return cmd.Val(), nil
}

// Load implements redis.Loader.
func (a adapter) Load(ctx context.Context, key, library string) error {
	client := a.client
	if c, ok := client.(*goredis.ClusterClient); ok {
		node, err := c.MasterForKey(ctx, key)
		if err != nil {
			return err
		}
		client = node
	}
	return a.within(ctx, func() error { return client.FunctionLoad(ctx, library).Err() })
}

// Exists implements redis.Client. It asks each master of a cluster apart, so that none that does not answer takes
// the answers of the others with it.
func (a adapter) Exists(ctx context.Context, keys []string) []error {
	errs := make([]error, len(keys))
	var wg sync.WaitGroup
	for _, places := range a.byMaster(ctx, keys) {
		wg.Go(func() {
			pipe := a.client.Pipeline()
			for _, i := range places {
				pipe.Exists(ctx, keys[i])
			}
			var cmds []goredis.Cmder
			err := a.within(ctx, func() error {
				cmds, _ = pipe.Exec(ctx)
				return ctx.Err()
			})
			for n, i := range places {
				if errs[i] = err; err == nil {
					errs[i] = cmds[n].Err()
				}
			}
		})
	}
	wg.Wait()
	return errs
}

// byMaster returns the places of the keys of each master; all together if the masters are not known.
func (a adapter) byMaster(ctx context.Context, keys []string) map[*goredis.Client][]int {
	c, isCluster := a.client.(*goredis.ClusterClient)
	places := map[*goredis.Client][]int{}
	err := a.within(ctx, func() error {
		for i, key := range keys {
			var master *goredis.Client
			if isCluster {
				var err error
				if master, err = c.MasterForKey(ctx, key); err != nil {
					return err // the others would wait, too
				}
			}
			places[master] = append(places[master], i)
		}
		return nil
	})
	if err == nil {
		return places
	}
	all := make([]int, len(keys))
	for i := range all {
		all[i] = i
	}
	return map[*goredis.Client][]int{nil: all}
}

// once is a command that the client must not send again.
type once struct{ *goredis.StringCmd }

func (once) NoRetry() bool { return true }

// within waits for a call as long as the context allows: by default a client waits for as
// long as its own timeouts say.
func (a adapter) within(ctx context.Context, call func() error) error {
	if a.heedsContext {
		return call()
	}
	ended := make(chan error, 1)
	go func() { ended <- call() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
