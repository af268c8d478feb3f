package memory

import (
	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/clock"
)

// DefaultMaxKeys is the bound on keys unless Options says otherwise. A key costs
// about 60 bytes, so a full store is about 60 MB. Two algorithms need more: a
// sliding_log 8 bytes for each unit that counts, and sliding_buckets 8 for each
// sub-window, both rounded up to a power of two.
const DefaultMaxKeys = 1 << 20

// Options of a store. The zero value is ready to use.
type Options struct {
	// MaxKeys is the most keys that are remembered at once. Default
	// DefaultMaxKeys. Fewer than weir.MaxOps, which one request may need, are
	// raised to that.
	MaxKeys int

	// Clock tells the time. Default the system's. It may step back: budget is
	// never minted, but keys that were charged later than now are frozen until
	// it has caught up.
	Clock func() weir.Micros
}

func (o Options) withDefaults() Options {
	if o.MaxKeys <= 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	o.MaxKeys = max(o.MaxKeys, weir.MaxOps)
	if o.Clock == nil {
		c := clock.New()
		o.Clock = func() weir.Micros { return weir.Micros(c.Now()) }
	}
	return o
}
