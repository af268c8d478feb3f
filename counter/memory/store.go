package memory

import (
	"context"
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
)

// Store keeps counts in memory. It is safe for concurrent use.
type Store struct {
	maxMembers int
	kept       counter.Retention
	clock      func() weir.Micros

	snapshot sync.Mutex // held by whoever takes or restores one; before mu

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

// Len is how many entries are kept: see Options.MaxEntries.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.room.weight
}

// lock takes the store, and tells the time at which it did: what is counted later has a
// later time. It fails if nobody waits for the answer.
func (s *Store) lock(ctx context.Context) (weir.Micros, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	return s.clock(), nil
}

// roomFor is how many members are left when there were too many.
func (s *Store) roomFor() int { return s.maxMembers - s.maxMembers/8 }

func micros(d time.Duration) weir.Micros { return weir.Micros(d.Microseconds()) }

// timeOf is an instant as answers have it.
func timeOf(t weir.Micros) time.Time { return time.UnixMicro(int64(t)).UTC() }
