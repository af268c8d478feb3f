// Package redis keeps counts in Redis, where any number of processes share them.
//
//	store, err := redis.New(client, redis.Options{})
//
// Each call runs one script by the clock of Redis, all or nothing. There is one
// exception: on a cluster, a call for counters of several groups (or for several
// counters without a group) runs one script per group. Each script is all or nothing;
// if one fails, others may have succeeded. A prefix with a hash tag, as in "{app}:",
// avoids this by keeping all keys on one node.
//
// A command that may have been executed is never sent twice; set DisableRetry on the
// client. A call ends within its timeout, with counter.ErrUnavailable if there was no
// answer.
//
// # Keys
//
// After the prefix "weir:counter:" the keys are
//
//	c:WINDOW:ZONE{NAME}         a counter: a hash of its windows
//	c:WINDOW:ZONE:NAME{GROUP}   a counter in a group
//	d:WINDOW:ZONE{NAME}         a distinct counter: the same, which window each sketch has,
//	                            and a secret with which members are hashed
//	d0:WINDOW:ZONE{NAME}, d1:…  its sketches, of this window and the one before: a set of
//	                            hashes, or a HyperLogLog if there are many
//	vNUMBER:WINDOW:ZONE{NAME}   a window of a distribution: a hash of its buckets
//	i{SEQUENCE}                 the last number of a sequence
//	b:WINDOW:ZONE:…{NAME}       a leaderboard: eight sorted sets in a ring, and a hash
//	s:SECONDS:…{NAME}           a sliding board: the sum, 21 steps in a ring, and a hash
//	h:SECONDS:…{NAME}           a hot list: the same, the hot items, and events
//
// Braces, colons and percent signs in names are written %7B, %7D, %3A and %25. A key
// expires some time after its data can no longer be read. A full Redis that evicts keys
// drops counts earlier.
package redis

import (
	"cmp"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/redislink"
)

// Defaults of Options.
const (
	DefaultPrefix  = "weir:counter:"
	DefaultTimeout = 500 * time.Millisecond
)

// Options configures a store. The zero value is ready to use. All processes that share
// counts should use the same options, except for the timeout.
type Options struct {
	// Prefix is the prefix of every key. Default DefaultPrefix. A hash tag, as in
	// "{app}:", puts all keys of a cluster on one node.
	Prefix string

	// Timeout is the maximum duration of a call. Default DefaultTimeout.
	Timeout time.Duration

	// MaxMembers is the maximum number of members of a leaderboard, and of items of a
	// hot list. Default counter.DefaultMaxMembers.
	MaxMembers int

	// Retention configures how long counts are kept. For defaults see
	// counter.Retention.
	Retention counter.Retention

	// Clock replaces the clock of Redis in tests.
	Clock func() weir.Micros
}

// Store keeps counts in Redis. It is safe for concurrent use.
type Store struct {
	conn       redislink.Conn
	tagged     bool // the prefix puts everything on one node
	prefix     string
	maxMembers int
	kept       counter.Retention
	clock      func() weir.Micros
	ahead      atomic.Int64 // by how many microseconds Redis's clock was seen to be, if by too many
}

var _ counter.Store = (*Store)(nil)

// New returns a store that uses the client, for a single server, Sentinel or a cluster.
// The caller closes the client. New sends nothing to Redis.
func New(client rueidis.Client, o Options) (*Store, error) {
	return Open(redislink.Given(client), o)
}

// Open returns a store for a Redis that may not be available yet. The function client
// returns a client, or an error while there is none.
func Open(client func() (rueidis.Client, error), o Options) (*Store, error) {
	conn := redislink.Conn{Name: "counter", Client: client, Timeout: o.Timeout, Unavailable: counter.ErrUnavailable}
	if err := conn.Check(DefaultTimeout); err != nil {
		return nil, err
	}
	o.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
	tagged := strings.Contains(o.Prefix, "{")
	if _, rest, _ := strings.Cut(o.Prefix, "{"); tagged && strings.Index(rest, "}") < 1 {
		return nil, errors.New("counter: Prefix has a brace that does not begin a hash tag; write it as in \"{app}:\", or without")
	}
	if o.MaxMembers <= 0 {
		o.MaxMembers = counter.DefaultMaxMembers
	}
	return &Store{
		conn: conn, tagged: tagged,
		prefix: o.Prefix, maxMembers: o.MaxMembers, kept: o.Retention.WithDefaults(), clock: o.Clock,
	}, nil
}

// split is whether calls are made by group, since the keys may be on several nodes.
func (s *Store) split() bool {
	if s.tagged {
		return false
	}
	client, err := s.conn.Client() // without one, the call fails as it is
	return err == nil && client.Mode() == rueidis.ClientModeCluster
}

// roomFor is how many members are left when there were too many.
func (s *Store) roomFor() int { return s.maxMembers - s.maxMembers/8 }
