// Package redis keeps queues in Redis, where any number of processes share them.
//
//	store, err := redis.New(client, map[string]queue.Settings{
//		"mail": {N: 10, Period: time.Second},
//	}, redis.Options{})
//
// Each call runs one script, by the clock of Redis. The scripts (script/*.lua)
// implement in Lua what queue/memory does in Go; tests prove that both give the same
// answers.
//
// # Keys
//
// With the prefix "weir:" the keys of a queue are
//
//	weir:queue{mail}:meta     a hash: the last number, the pace
//	weir:queue{mail}:work     a hash: item → payload
//	weir:queue{mail}:facts    a hash: item → tries, lease, ID and the like
//	weir:queue{mail}:ids      a hash: ID → item
//	weir:queue{mail}:ready    a sorted set of items, as are delayed, leased and dead
//	weir:queue{mail}:done     a sorted set of IDs that are remembered
//
// and the channel weir:queue{mail}:changed wakes workers. The braces put them all on
// one slot of a cluster.
//
// # Expiry
//
// Items do not expire: an accepted item stays until it is done or deleted. The settings
// bound the memory instead. An empty queue has only two keys: meta, which expires after
// an hour or as long as its pace needs, and done, which expires with the remembered
// IDs. So Redis needs the maxmemory-policy noeviction, or one of volatile-*, which
// evict only keys that expire. When memory runs out, a push fails, but existing items
// can still be leased, processed and acknowledged.
//
// How durable an accepted item is depends on Redis. With appendonly yes and appendfsync
// always, items survive a crash of the server; with everysec, the last second may be
// lost; without persistence, everything is lost. After a failover, the new primary has
// what had been replicated.
//
// # Errors
//
// A call ends within its timeout, and no command is sent twice. After
// queue.ErrUnavailable the call may have taken effect, unless the error says otherwise.
// Push again with the same ID. Acknowledge again, and treat queue.ErrLost as success. If
// the answer to a Lease got lost, its items go to another worker when the lease expires,
// and count one try.
package redis

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/queue"
)

// Defaults of Options.
const (
	DefaultPrefix  = "weir:"
	DefaultTimeout = time.Second
)

// Options configures a store. The zero value is ready to use.
type Options struct {
	// Prefix is the prefix of every key. Default DefaultPrefix. It must not contain
	// braces.
	Prefix string

	// Timeout is the maximum duration of a call. Default DefaultTimeout.
	Timeout time.Duration

	// Clock replaces the clock of Redis in tests.
	Clock func() weir.Micros
}

// Store keeps queues in Redis. It is safe for concurrent use.
type Store struct {
	conn   redislink.Conn
	clock  func() weir.Micros
	poll   time.Duration // between two attempts to listen
	queues map[string]*keys
}

var _ queue.Store = (*Store)(nil)

// keys are what a queue is called, and what every script is told about it.
type keys struct {
	terms   *queue.Terms
	names   []string
	channel string
	args    []string // all but the time
}

// New returns a store that uses the client, for a single server, Sentinel or a cluster.
// The caller closes the client. Set DisableRetry on the client. Do not share it with
// the store of limits, because checks would wait behind payloads. New sends nothing to
// Redis.
func New(client rueidis.Client, queues map[string]queue.Settings, o Options) (*Store, error) {
	return Open(redislink.Given(client), queues, o)
}

// Open returns a store for a Redis that may not be available yet. The function client
// returns a client, or an error while there is none.
func Open(client func() (rueidis.Client, error), queues map[string]queue.Settings, o Options) (*Store, error) {
	conn := redislink.Conn{Name: "redis", Client: client, Timeout: o.Timeout, Unavailable: queue.ErrUnavailable}
	if err := conn.Check(DefaultTimeout); err != nil {
		return nil, err
	}
	o.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
	if strings.ContainsAny(o.Prefix, "{}") {
		return nil, errors.New("redis: Prefix contains a brace, which would put the keys of a queue on different slots of a cluster; remove it")
	}
	declared, err := queue.Declare(queues)
	if err != nil {
		return nil, err
	}
	s := &Store{conn: conn, clock: o.Clock, poll: time.Second, queues: map[string]*keys{}}
	for name, terms := range declared {
		s.queues[name] = keysOf(o.Prefix+"queue{"+name+"}:", terms)
	}
	return s, nil
}

func keysOf(start string, t *queue.Terms) *keys {
	k := &keys{terms: t, channel: start + "changed"}
	for _, name := range []string{"meta", "work", "facts", "ids", "ready", "delayed", "leased", "dead", "done"} {
		k.names = append(k.names, start+name)
	}
	gap := (t.Span + t.Rate - 1) / t.Rate
	k.args = []string{k.channel, queue.Expired}
	for _, n := range []int64{
		int64(t.Capacity), int64(t.MaxTries), int64(t.MaxDead),
		t.VisibilityMicros, t.BackoffMicros, t.MaxBackoffMicros, t.RememberMicros,
		t.Rate, t.Span / t.Rate, t.Span % t.Rate, queue.MaxAhead.Microseconds() + gap,
		queue.MaxSweep, queue.MaxPageBytes,
	} {
		k.args = append(k.args, strconv.FormatInt(n, 10))
	}
	return k
}

// Terms implements queue.Store.
func (s *Store) Terms(name string) (*queue.Terms, error) {
	k := s.queues[name]
	if k == nil {
		return nil, queue.ErrNoQueue
	}
	return k.terms, nil
}

//go:embed script/*.lua
var scriptFiles embed.FS

// script returns what a verb says in Lua.
func script(verb string) *rueidis.Lua { return redislink.Script(scriptFiles, "common", verb) }

var (
	pushScript    = script("push")
	leaseScript   = script("lease")
	ackScript     = script("ack")
	nackScript    = script("nack")
	extendScript  = script("extend")
	returnScript  = script("return")
	statsScript   = script("stats")
	deadScript    = script("dead")
	requeueScript = script("requeue")
	deleteScript  = script("delete")
)

// call runs a script on a queue and returns its answer.
func (s *Store) call(ctx context.Context, name string, script *rueidis.Lua, args ...string) *redislink.Answer {
	k := s.queues[name]
	if k == nil {
		return s.conn.Failed(queue.ErrNoQueue)
	}
	now := int64(0)
	if s.clock != nil {
		now = int64(s.clock()) + 1
	}
	all := append(append([]string{strconv.FormatInt(now, 10)}, k.args...), args...)
	return s.conn.Run(ctx, script, k.names, all)
}

// Ping sends a request to Redis and returns an error if Redis is unavailable.
func (s *Store) Ping(ctx context.Context) error {
	err := s.conn.Do(ctx, func(ctx context.Context, c rueidis.Client) error {
		return c.Do(ctx, c.B().Ping().Build()).Error()
	})
	if err != nil {
		return s.conn.Explain("", err)
	}
	return nil
}
