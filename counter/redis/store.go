// Package redis keeps counts in Redis, where any number of processes share them.
//
//	store, err := redis.New(client, redis.Options{})
//
// A call is one script, by Redis's own clock, that does everything or nothing. Only a
// call for counters of several groups (or for several without one) is split on a
// cluster, one script a group: each does everything or nothing, and if one fails,
// others may have been done. A prefix with a hash tag, as in "{app}:", puts everything
// on one node instead.
//
// Nothing is sent twice that may have been done: a client should have DisableRetry set.
// A call ends within its timeout, with counter.ErrUnavailable if there was no answer.
//
// # Keys
//
// With the prefix "weir:counter:" they are
//
//	c:WINDOW:ZONE{NAME}         a counter: a hash of its windows
//	c:WINDOW:ZONE:NAME{GROUP}   a counter in a group
//	i{SEQUENCE}                 the last number of a sequence
//	b:WINDOW:ZONE:…{NAME}       a leaderboard: eight sorted sets in a ring, and a hash
//	s:SECONDS:…{NAME}           a sliding one: the sum, 21 steps in a ring, and a hash
//	h:SECONDS:…{NAME}           a hot list: the same, what is hot, and events
//
// where braces, colons and per cent signs in names are written %7B, %7D, %3A and %25.
// Every key expires some time after nothing of it can be read any more. A Redis that is
// full and evicts keys takes counts away before that.
package redis

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/redislink"
)

// What Options stand for when they say nothing.
const (
	DefaultPrefix  = "weir:counter:"
	DefaultTimeout = 500 * time.Millisecond
)

// Options of a store. The zero value is ready to use. All processes that share counts
// should have the same, but for the timeout.
type Options struct {
	// Prefix begins every key. Default DefaultPrefix. With a hash tag, as in
	// "{app}:", all keys of a cluster are on one node.
	Prefix string

	// Timeout is how long a call may take. Default DefaultTimeout.
	Timeout time.Duration

	// MaxMembers bounds a leaderboard, and a hot list. Default
	// counter.DefaultMaxMembers.
	MaxMembers int

	// Retention is how long counts are kept. Default see there.
	Retention counter.Retention

	// Clock, for tests, is asked instead of Redis's own clock.
	Clock func() weir.Micros
}

// Store keeps counts in Redis. It is safe for concurrent use.
type Store struct {
	client     func() (rueidis.Client, error)
	tagged     bool // the prefix puts everything on one node
	prefix     string
	timeout    time.Duration
	maxMembers int
	kept       counter.Retention
	clock      func() weir.Micros
}

var _ counter.Store = (*Store)(nil)

// New returns a store on a client, which stays the caller's to close. It may be one of a
// server, of Sentinels or of a cluster. Nothing is asked of Redis yet.
func New(client rueidis.Client, o Options) (*Store, error) {
	if client == nil {
		return nil, errors.New("counter: New needs a client; rueidis.NewClient makes one")
	}
	return Open(redislink.Of(client).Client, o)
}

// Open is New on a Redis that need not be there yet: client returns a client, or why there
// is none at the moment.
func Open(client func() (rueidis.Client, error), o Options) (*Store, error) {
	if o.Timeout < 0 {
		return nil, errors.New("counter: Timeout is negative; leave it 0 for the default")
	}
	o.Prefix, o.Timeout = cmp.Or(o.Prefix, DefaultPrefix), cmp.Or(o.Timeout, DefaultTimeout)
	tagged := strings.Contains(o.Prefix, "{")
	if _, rest, _ := strings.Cut(o.Prefix, "{"); tagged && strings.Index(rest, "}") < 1 {
		return nil, errors.New("counter: Prefix has a brace that begins no hash tag; write it as in \"{app}:\", or without")
	}
	if o.MaxMembers <= 0 {
		o.MaxMembers = counter.DefaultMaxMembers
	}
	return &Store{
		client: client, tagged: tagged,
		prefix: o.Prefix, timeout: o.Timeout, maxMembers: o.MaxMembers, kept: o.Retention.WithDefaults(), clock: o.Clock,
	}, nil
}

// split is whether calls are made by group, since the keys may be on several nodes.
func (s *Store) split() bool {
	if s.tagged {
		return false
	}
	client, err := s.client() // without one, the call fails as it is
	return err == nil && client.Mode() == rueidis.ClientModeCluster
}

// roomFor is how many members are left when there were too many.
func (s *Store) roomFor() int { return s.maxMembers - s.maxMembers/8 }
