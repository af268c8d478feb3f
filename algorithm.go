package weir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/notation"
)

// Algorithm selects how a [Limit] counts.
type Algorithm uint8

// The algorithms. The zero value is TokenBucket, the usual choice for an API.
const (
	// TokenBucket allows bursts up to a capacity that refills at N/Period.
	TokenBucket Algorithm = iota
	// LeakyBucket drains at N/Period. It allows the same requests as the token bucket;
	// with Limit.Shape it is a queue with a constant outflow.
	LeakyBucket
	// FixedWindow counts in windows aligned to the epoch. Around a boundary it
	// allows up to 2N in less than a Period.
	FixedWindow
	// SlidingWindow estimates the last Period from the current window and a share of
	// the previous one. It assumes that the previous window's requests were spread
	// evenly.
	SlidingWindow
	// SlidingLog stores the time of every unit. It is exact and takes 8 bytes per unit.
	SlidingLog
	// SlidingBuckets counts in Limit.Buckets sub-windows. It never allows more
	// than N in any Period, and frees a unit at most one sub-window late.
	SlidingBuckets
	// InFlight limits how many requests run at the same time: N places, each of which is
	// free again when it is refunded or a Period after it was taken. It is a SlidingLog
	// whose units usually come back early.
	InFlight
)

var algorithmNames = []string{
	TokenBucket:    "token_bucket",
	LeakyBucket:    "leaky_bucket",
	FixedWindow:    "fixed_window",
	SlidingWindow:  "sliding_window",
	SlidingLog:     "sliding_log",
	SlidingBuckets: "sliding_buckets",
	InFlight:       "in_flight",
}

// algorithmsElsewhere are well-known names of the same algorithms. GCRA is the token
// bucket, kept as one instant.
var algorithmsElsewhere = map[string]string{
	"gcra": "token_bucket", "generic_cell_rate_algorithm": "token_bucket",
	"leaky_bucket_meter": "leaky_bucket", "leaky_bucket_as_meter": "leaky_bucket", "leaky_bucket_as_a_meter": "leaky_bucket",
	"fixed_window_counter": "fixed_window", "fixed_counter": "fixed_window",
	"sliding_window_counter": "sliding_window", "sliding_counter": "sliding_window", "sliding_window_approximation": "sliding_window",
	"sliding_window_log": "sliding_log", "sliding_window_logs": "sliding_log", "sliding_log_window": "sliding_log", "sorted_set": "sliding_log",
	"sliding_window_buckets": "sliding_buckets", "sliding_window_bucket": "sliding_buckets", "bucketed_sliding_window": "sliding_buckets",
}

// Algorithms returns the algorithms of rates, simplest first, for tables and tests that
// must cover each of them. InFlight, which limits no rate, is not among them.
func Algorithms() []Algorithm {
	return []Algorithm{FixedWindow, SlidingWindow, SlidingBuckets, SlidingLog, TokenBucket, LeakyBucket}
}

// ParseAlgorithm parses the name of an algorithm of rates, such as "token_bucket".
func ParseAlgorithm(name string) (Algorithm, error) {
	a, err := parseAlgorithm(name)
	if a == InFlight {
		return 0, invalid("algorithm", "in_flight limits no rate, but how many requests run at the same time, which a rule writes as concurrency: 20; for a rate, choose one of %s", strings.Join(algorithmNames[:InFlight], ", "))
	}
	return a, err
}

// parseAlgorithm parses the name of any algorithm.
func parseAlgorithm(name string) (Algorithm, error) {
	if i := slices.Index(algorithmNames, name); i >= 0 {
		return Algorithm(i), nil
	}
	if here := notation.NameHere(name, algorithmsElsewhere); here != "" {
		return 0, invalid("algorithm", "%q is called %q here", name, here)
	}
	return 0, invalid("algorithm", "%q is unknown; %s", name, notation.Hint(name, algorithmNames[:InFlight], "choose one of "+strings.Join(algorithmNames[:InFlight], ", ")))
}

// String returns the name of the algorithm.
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) {
		return algorithmNames[a]
	}
	return fmt.Sprintf("Algorithm(%d)", uint8(a))
}

// MarshalText returns the name, so that JSON and YAML contain the name.
func (a Algorithm) MarshalText() ([]byte, error) {
	if int(a) >= len(algorithmNames) {
		return nil, invalid("algorithm", "%d is unknown", uint8(a))
	}
	return []byte(a.String()), nil
}

// UnmarshalText parses a name as String returns it.
func (a *Algorithm) UnmarshalText(text []byte) error {
	parsed, err := parseAlgorithm(string(text))
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}

// leaks reports whether the algorithm is a level that drains continuously,
// rather than a count over a stretch of time.
func (a Algorithm) leaks() bool { return a == TokenBucket || a == LeakyBucket }

// logs reports whether the algorithm keeps the time of every unit.
func (a Algorithm) logs() bool { return a == SlidingLog || a == InFlight }
