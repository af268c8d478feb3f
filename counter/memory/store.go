// Package memory keeps counts in the process: for a single instance, or for tests of
// programs that use Redis in production. The counts are lost when the process ends,
// unless the next process restores a Snapshot.
//
// The size of the store is bounded. When it is full, it drops expired entries. If there are none,
// it rejects new names with counter.ErrFull. It never drops a count that has not expired.
package memory

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/clock"
)

// DefaultMaxEntries is the default of Options.MaxEntries. A counter takes about 400
// bytes plus twice its name, and other entries take less. So a full store takes about
// 100 MB, and twice as much if its names have used up their reserve.
const DefaultMaxEntries = 1 << 18

// Options configures a store. The zero value is ready to use.
type Options struct {
	// MaxEntries is the number of entries from which on new names are rejected. Names that
	// exist may then still get new windows and members: as many entries again. When these are
	// used up, too, only counters that need no new window go on. Default DefaultMaxEntries. Each
	// counter, sequence, leaderboard and hot list is an entry. So are eight past
	// windows of a counter, 50 members of a distinct counter (41 entries if it has more
	// than counter.ExactMembers), a member in a window of a leaderboard, a member or item
	// in a step of a sliding window, an event, and a window of a distribution, with 16 of
	// its buckets.
	MaxEntries int

	// MaxMembers is the maximum number of members of a leaderboard, and of items of a
	// hot list. Default counter.DefaultMaxMembers.
	MaxMembers int

	// Retention configures how long counts are kept. For defaults see
	// counter.Retention.
	Retention counter.Retention

	// Clock returns the time. Default the system clock.
	Clock func() weir.Micros
}

func (o Options) withDefaults() Options {
	o.Retention = o.Retention.WithDefaults()
	if o.MaxMembers <= 0 {
		o.MaxMembers = counter.DefaultMaxMembers
	}
	if o.MaxEntries <= 0 {
		o.MaxEntries = DefaultMaxEntries
	}
	if o.Clock == nil {
		c := clock.New()
		o.Clock = func() weir.Micros { return weir.Micros(c.Now()) }
	}
	return o
}

// Store keeps counts in memory. It is safe for concurrent use.
type Store struct {
	maxMembers int
	kept       counter.Retention
	clock      func() weir.Micros

	snapshot sync.Mutex // held while a snapshot is taken or restored; locked before mu

	mu   sync.Mutex
	room room
}

var _ counter.Store = (*Store)(nil)

// New returns an empty store.
func New(o Options) *Store {
	o = o.withDefaults()
	return &Store{
		maxMembers: o.MaxMembers, kept: o.Retention, clock: o.Clock,
		room: room{most: o.MaxEntries, entries: map[ident]*entry{}},
	}
}

// Len returns the number of entries; see Options.MaxEntries.
func (s *Store) Len() int { return s.Usage().Entries }

// Usage is how full a store is.
type Usage struct {
	Entries  int   // some may have expired
	Capacity int   // Options.MaxEntries
	Rejected int64 // calls that got counter.ErrFull
}

// Usage returns how full the store is.
func (s *Store) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Usage{Entries: s.room.weight, Capacity: s.room.most, Rejected: s.room.rejected}
}

// lock locks the store and returns the time at which it did, so that later calls have
// later times. It returns an error if the arguments are invalid or the context has
// ended.
func (s *Store) lock(ctx context.Context, invalid error) (weir.Micros, error) {
	if err := cmp.Or(invalid, ctx.Err()); err != nil {
		return 0, err
	}
	s.mu.Lock()
	return s.clock(), nil
}

// each locks the store and answers for n things one after the other, unless the arguments are invalid, the
// context has ended, or may, if it is not nil, returns an error.
func each[A any](ctx context.Context, s *Store, invalid error, n int, may func(now weir.Micros) error, one func(i int, now weir.Micros) A) ([]A, error) {
	now, err := s.lock(ctx, invalid)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if may != nil {
		if err := may(now); err != nil {
			return nil, err
		}
	}
	answers := make([]A, n)
	for i := range n {
		answers[i] = one(i, now)
	}
	return answers, nil
}

// roomFor is how many members are left when there were too many.
func (s *Store) roomFor() int { return s.maxMembers - s.maxMembers/8 }

func micros(d time.Duration) weir.Micros { return weir.Micros(d.Microseconds()) }
