package stats

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// Defaults of Options.
const (
	DefaultMaxRules       = 200
	DefaultMaxRoutes      = 50
	DefaultMaxPending     = 2 * time.Minute
	DefaultMaxSubscribers = 100
)

// Options configures a recorder.
type Options struct {
	// Archive stores the statistics. Required.
	Archive archive.Store

	// MaxRules is how many rules are counted separately: the first ones of the
	// document, then those of InstallDemands. The others are counted together. Default
	// DefaultMaxRules.
	MaxRules int

	// MaxRoutes is how many routes are counted separately: the first ones that appear.
	// Default DefaultMaxRoutes.
	MaxRoutes int

	// MaxPending is how long statistics are buffered while the archive is unavailable.
	// Default DefaultMaxPending, at most an hour.
	MaxPending time.Duration

	// MaxSubscribers is the maximum number of subscriptions. Default
	// DefaultMaxSubscribers.
	MaxSubscribers int

	// Instance is the name of this process in denials. Default none.
	Instance string

	// Clock returns the time. Default time.Now.
	Clock func() time.Time

	// Logger receives a record when the archive becomes unavailable, and when it is
	// available again. Default slog.Default().
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Archive == nil {
		return o, errors.New("stats: Options.Archive is required; use archive.NewMemory")
	}
	for _, bound := range []struct {
		name  string
		value *int
		fall  int
		most  int
	}{
		{"MaxRules", &o.MaxRules, DefaultMaxRules, 1000},
		{"MaxRoutes", &o.MaxRoutes, DefaultMaxRoutes, 150},
		{"MaxSubscribers", &o.MaxSubscribers, DefaultMaxSubscribers, 10_000},
	} {
		*bound.value = cmp.Or(*bound.value, bound.fall)
		if *bound.value < 0 || *bound.value > bound.most {
			return o, fmt.Errorf("stats: %s is %d; write 1 to %d, or 0 for %d", bound.name, *bound.value, bound.most, bound.fall)
		}
	}
	o.MaxPending = cmp.Or(o.MaxPending, DefaultMaxPending)
	if o.MaxPending < time.Second || o.MaxPending > time.Hour {
		return o, fmt.Errorf("stats: MaxPending is %v; write 1s to 1h, or 0 for %v", o.MaxPending, DefaultMaxPending)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o, nil
}
