package memory

import (
	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/clock"
)

// DefaultMaxEntries is the bound on entries unless Options says otherwise. A counter
// costs about 400 bytes, other entries less, and its name twice; so a full store is
// about 100 MB.
const DefaultMaxEntries = 1 << 18

// Options of a store. The zero value is ready to use.
type Options struct {
	// MaxEntries bounds what is kept. Default DefaultMaxEntries. Each counter,
	// sequence, leaderboard and hot list is an entry; so are every eight past windows of
	// a counter, a member in a window of a leaderboard, a member or item in a step of a
	// sliding window, and an event. Fewer than the largest list may need are raised to
	// that.
	MaxEntries int

	// MaxMembers bounds a leaderboard, and a hot list. Default
	// counter.DefaultMaxMembers.
	MaxMembers int

	// Retention is how long counts are kept. Default see there.
	Retention counter.Retention

	// Clock tells the time. Default the system's.
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
	// One more step may be counted into before the lowest are dropped, in one batch;
	// and all items may be hot, and events told of them.
	o.MaxEntries = max(o.MaxEntries, (counter.Steps+3)*(o.MaxMembers+counter.MaxBatch)+counter.MaxEvents+1)
	if o.Clock == nil {
		c := clock.New()
		o.Clock = func() weir.Micros { return weir.Micros(c.Now()) }
	}
	return o
}
