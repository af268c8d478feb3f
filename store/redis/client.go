package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redislink"
)

// Client is the interface that a store needs from a Redis client. [New] accepts a
// rueidis client, and package goredis a go-redis client. Implement Client to use
// another library.
type Client interface {
	// Eval sends EVALSHA or EVAL with the script, or FCALL with the name of a function if
	// the client is a [Loader], then the keys and one argument, and returns the reply. It must send the command only once, because the command may
	// have been charged: switch off the retries of the client. It returns when the
	// context ends.
	Eval(ctx context.Context, command, script string, keys []string, arg string) (string, error)

	// Exists sends EXISTS for each of the keys, and returns the error of each call.
	Exists(ctx context.Context, keys []string) []error

	// Cluster reports whether the keys are spread over several nodes by slot.
	Cluster() bool
}

// Loader is a [Client] that can load functions. With another client, Redis runs scripts, which
// takes more time.
type Loader interface {
	// Load sends FUNCTION LOAD with the library to the server that has the key.
	Load(ctx context.Context, key, library string) error
}

// ReplyError is an error reply from Redis. Every such error of a [Client] must have
// this method, as those of go-redis do. Other errors count as no answer.
type ReplyError interface {
	error
	RedisError()
}

// replyOf returns what Redis has said, if an error is that.
func replyOf(err error) (text string, ok bool) {
	if err == nil {
		return "", false
	}
	if native := (*rueidis.RedisError)(nil); errors.As(err, &native) {
		return native.Error(), true
	}
	if other := ReplyError(nil); errors.As(err, &other) {
		return other.Error(), true
	}
	return "", false
}

// saysAny reports whether Redis has replied with an error of one of these kinds.
func saysAny(err error, kinds ...string) bool {
	text, ok := replyOf(err)
	kind, _, _ := strings.Cut(text, " ")
	return ok && slices.Contains(kinds, kind)
}

var errNotConnected = fmt.Errorf("redis: %w", weir.ErrUnavailable)

// notConnected is the error of calls while there is no connection. It has the words of why, but is not a reply: what Redis
// says to one who logs in is no answer to a call.
func notConnected(why error) error { return fmt.Errorf("%w: %v", errNotConnected, why) }

// native is a client of rueidis, if there is one at the moment.
type native struct {
	link    *redislink.Link
	cluster bool
}

func (n native) Eval(ctx context.Context, command, script string, keys []string, arg string) (string, error) {
	c, err := n.link.Current()
	switch {
	case err != nil:
		return "", notConnected(err)
	case command == fcall:
		return c.Do(ctx, c.B().Fcall().Function(script).Numkeys(int64(len(keys))).Key(keys...).Arg(arg).Build()).ToString()
	case command == evalSHA:
		return c.Do(ctx, c.B().Evalsha().Sha1(script).Numkeys(int64(len(keys))).Key(keys...).Arg(arg).Build()).ToString()
	}
	return c.Do(ctx, c.B().Eval().Script(script).Numkeys(int64(len(keys))).Key(keys...).Arg(arg).Build()).ToString()
}

// Load implements Loader. A cluster has a connection to the server of the first command's key.
func (n native) Load(ctx context.Context, key, library string) error {
	c, err := n.link.Current()
	if err != nil {
		return notConnected(err)
	}
	return c.Dedicated(func(d rueidis.DedicatedClient) error {
		if err := d.Do(ctx, d.B().Exists().Key(key).Build()).Error(); err != nil {
			return err
		}
		return d.Do(ctx, d.B().FunctionLoad().FunctionCode(library).Build()).Error()
	})
}

func (n native) Exists(ctx context.Context, keys []string) []error {
	c, err := n.link.Current()
	if err != nil {
		return slices.Repeat([]error{notConnected(err)}, len(keys))
	}
	errs, commands := make([]error, len(keys)), make(rueidis.Commands, len(keys))
	for i, key := range keys {
		commands[i] = c.B().Exists().Key(key).Build()
	}
	for i, r := range c.DoMulti(ctx, commands...) {
		errs[i] = r.Error()
	}
	return errs
}

func (n native) Cluster() bool { return n.cluster }
