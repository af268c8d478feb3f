// Package lease decides requests in this process, without a call to the store for each, and never allows more than the
// store would. Use it where the time of a call matters: a store in another region, or one that is the
// bottleneck.
//
// A [Store] wraps a [weir.LeaseStore]. It leases units of the keys that are used often, spends them in memory, and reports
// what it has spent. The wrapped store counts leased units as taken, so all processes together stay within the
// limit, whether or not they wrap it: every algorithm keeps its [weir.Compiled.Bound]. A process that
// dies makes the others wait for what it had leased, at most, and allows nothing more. While the store is unavailable, units
// that are leased are spent until their lease ends; then its error is returned.
//
// What differs from the wrapped store:
//
//   - Units that another process has leased and does not use are denied here, for about [Options.Term].
//     So a limit should be large, compared with the number of processes.
//   - Usage is seen by others when it is reported, and expires as if it had happened then: later, never earlier.
//   - Remaining is what was last known to be free in the store, and what is leased here. Leased is what was last known to be
//     on lease elsewhere, so that what neither is nor remains was used. ResetAfter and ResetAt are as of the last answer of the store.
//   - A denial is remembered for a twentieth of the period, at most for a term: requests on the key that cost at least as
//     much are denied without a call. Then one request asks, and the others do not wait for the answer. So is it when the store
//     cannot grant what the key uses, and has no more left than comes back in two round trips or in a 60th of the period (of a bucket: a tenth of its capacity):
//     for a 120th of the period (of a bucket: the time in which a 20th of it comes back), at most for a term. Refund and Reset
//     through this store end that at once; those through other processes do not.
//   - The Receipt of a request that was decided here is 2^62 or more. Refund gives its units back to the lease, or to the
//     store if they were reported lately, and gives nothing back later than that: within about 8 reports, as long as the key
//     is in use. Nor does it while the report of these units is under way.
//   - A hold that is settled in this process ([weir.Reservation.InProcess]) is on leased units, if there are enough. It does not expire. If it
//     lasts, what it has reserved is charged, and refunded as of then as far as it is not used. What is used beyond the reservation, and
//     is not leased here, the wrapped store charges. A settlement that is repeated finds no hold.
//
// These ask the store, as without leases: a key that is used less than three times in a twentieth of the period; limits
// that cannot be leased (see [weir.Compiled.Leasable]), and all other limits of such a request; periods under 100 ms;
// ops with Always, Look, MaxDelay or a Receipt; all other reservations and settlements, to which units on lease are not available.
//
// Do not use it for limits that are small or seldom used: they gain nothing. The wrapped store should answer
// within a tenth of the term.
package lease

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
)

// Defaults of Options.
const (
	DefaultTerm    = time.Second
	DefaultMaxKeys = 1 << 20
)

// OnlyLimits is the Options.Term with which only units of limits with a Lease are leased; see [weir.Limit].
const OnlyLimits = -1

const (
	minHorizon = 5 * time.Millisecond

	// seldom is how many requests on a key within its horizon ask the store as if there were no leases.
	seldom = 2

	shardCount = 64
	sightings  = 512 // in each shard
)

// Options configures a store. The zero value is ready to use.
type Options struct {
	// Term is how long units are leased of limits that do not say so themselves; see [weir.Limit]. Every report prolongs
	// it. A process that dies keeps units from others for so long. Default DefaultTerm; OnlyLimits for none. Values outside
	// weir.MinLease to weir.MaxLease are brought to the nearest of these.
	Term time.Duration

	// MaxKeys is the most keys with a lease, of about 400 bytes each. Beyond it, keys ask the store. A key counts
	// until the store has answered what was last reported of it. Default DefaultMaxKeys.
	MaxKeys int

	// Clock reads two clocks at once: the time of day, and the time since some instant by a clock that is never set. Units
	// are spent until either of them says that the lease has ended, because the second may stand still while
	// a machine is suspended. Default the system's clocks.
	Clock func() (wall time.Time, elapsed time.Duration)
}

// Store is a store with leases. It is safe for concurrent use. It is a [weir.HoldStore] and a [weir.PartialStore],
// whose methods work as those of the wrapped store. If that is no HoldStore, Reserve and Settle return an error; if it is no
// PartialStore, all ops are of one part.
type Store struct {
	store   weir.LeaseStore
	holds   weir.HoldStore    // nil if the store is not one
	partial weir.PartialStore // nil if the store is not one

	term    time.Duration // of limits that have none of their own; 0 for none
	maxKeys int64
	start   time.Time
	clock   func() (time.Time, time.Duration)
	offset  atomic.Int64 // of the time of day from the time since start, as of the last Elapsed
	seed    maphash.Seed
	shards  [shardCount]shard

	keys, unsure     atomic.Int64
	waiting          atomic.Int64
	asked, messages  atomic.Int64
	names            names
	full             atomic.Int64
	trip             atomic.Int64 // nanoseconds of a call, as averaged over the last ones
	background       context.Context
	cancel           context.CancelFunc
	agenda           agenda
	closing, started atomic.Bool
	done             chan struct{} // closed when nothing runs in the background any more
}

// shard has the keys of a part of all hashes.
type shard struct {
	mu     sync.Mutex
	keys   map[uint64]*entry // by hash; entries with the same one are a list
	holds  map[weir.HoldID]*hold
	local  int64
	denied int64
	seen   [sightings]sighting
}

// New returns a store that leases units of another one. Close it before the process ends, so that others get what
// it did not spend.
func New(store weir.LeaseStore, o Options) *Store {
	if o.Term == 0 {
		o.Term = DefaultTerm
	}
	if o.MaxKeys <= 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	s := &Store{
		store: store, maxKeys: int64(o.MaxKeys),
		start: time.Now(), clock: o.Clock, seed: maphash.MakeSeed(), done: make(chan struct{}),
	}
	if o.Term > 0 {
		s.term = min(max(o.Term, weir.MinLease), weir.MaxLease)
	}
	s.holds, _ = store.(weir.HoldStore)
	s.partial, _ = store.(weir.PartialStore)
	s.agenda.poke = make(chan struct{}, 1)
	s.background, s.cancel = context.WithCancel(context.Background())
	for i := range s.shards {
		s.shards[i].keys, s.shards[i].holds = make(map[uint64]*entry), make(map[weir.HoldID]*hold)
	}
	return s
}

// Timeout is how long a call of the wrapped store may take; 0 if it does not say so.
func (s *Store) Timeout() time.Duration {
	if own, ok := s.store.(interface{ Timeout() time.Duration }); ok {
		return own.Timeout()
	}
	return 0
}

// Stats counts requests and messages since the start, and tells what is leased now.
type Stats struct {
	Local    int64 // requests that were allowed without a call
	Denied   int64 // requests that were denied without a call
	Asked    int64 // requests that asked the wrapped store, and are under a limit of which units can be leased
	Messages int64 // messages about leases, in these calls and in the background

	Keys   int64 // that have a lease here
	Leased int64 // units that can be spent without a call

	// Unanswered is the keys whose last message has no answer yet because the store was unavailable. What they have spent is
	// reported until there is one.
	Unanswered int64

	Returned int64 // units that were given up, for others to take
	Lost     int64 // units whose lease ended before they were spent or given up; the store has charged them
	Full     int64 // requests that asked the store only because MaxKeys others had leases

	// Names has the numbers by the Name of the limits, in order. A request under several limits counts for each. Beyond
	// MaxNames, names are counted together, as "".
	Names []NameStats
}

// NameStats are the numbers of the limits with one Name: for rules, its id. See Stats.
type NameStats struct {
	Name                                         string
	Local, Denied, Asked, Leased, Returned, Lost int64
}

// MaxNames is how many names of limits are counted apart.
const MaxNames = 1000

// Stats returns the current numbers. It looks at every key with a lease.
func (s *Store) Stats() Stats {
	t := Stats{
		Asked: s.asked.Load(), Messages: s.messages.Load(), Keys: s.keys.Load(), Unanswered: s.unsure.Load(), Full: s.full.Load(),
	}
	byName := map[*counts]*NameStats{}
	now := s.now()
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		t.Local += sh.local
		t.Denied += sh.denied
		for _, e := range sh.keys {
			for ; e != nil; e = e.next {
				of := byName[e.counts]
				if of == nil {
					of = &NameStats{}
					byName[e.counts] = of
				}
				of.Local += e.local
				of.Denied += e.denied
				of.Leased += e.held(now)
			}
		}
		sh.mu.Unlock()
	}
	t.Names = s.names.stats(byName)
	for i := range t.Names {
		t.Leased += t.Names[i].Leased
		t.Returned += t.Names[i].Returned
		t.Lost += t.Names[i].Lost
	}
	return t
}

// instant is what both clocks say.
type instant struct {
	wall    int64         // nanoseconds
	elapsed time.Duration // by a clock that is never set
}

// now reads both clocks.
func (s *Store) now() instant {
	if s.clock != nil {
		wall, elapsed := s.clock()
		return instant{wall.UnixNano(), elapsed}
	}
	t := time.Now()
	return instant{t.UnixNano(), t.Sub(s.start)}
}
