package weir

import (
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/duration"
)

// kindNumber is exact without a name: the bits of algorithm, sub-windows and period
// do not overlap.
func (c *Compiled) kindNumber() uint64 {
	kind := uint64(c.period)<<15 | uint64(c.buckets)<<3 | uint64(c.limit.Algorithm)
	if c.limit.Name != "" {
		name := fnv.New64a()
		name.Write([]byte(c.limit.Name))
		kind ^= name.Sum64()
	}
	return kind
}

// letters name the algorithms where every byte counts.
var letters = [...]string{
	TokenBucket: "T", LeakyBucket: "K", FixedWindow: "F", SlidingWindow: "W", SlidingLog: "L", SlidingBuckets: "B",
}

// escapeName keeps names from being taken for what follows them.
var escapeName = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D", ":", "%3A")

// kindText is for people, and for stores that keep states by text: "login:F1m".
func (c *Compiled) kindText() string {
	text := letters[c.limit.Algorithm] + duration.Format(c.limit.Period)
	if c.limit.Algorithm == SlidingBuckets {
		text += "/" + strconv.FormatInt(c.buckets, 10)
	}
	if c.limit.Name != "" {
		text = escapeName.Replace(c.limit.Name) + ":" + text
	}
	return text
}

// Kind is equal for limits that share what a key has used: same name, algorithm,
// period and sub-windows. A store keeps one [State] for each key and kind, so
// changing N or Burst forgives nobody. Without names it is exact; two names agree
// by chance once in 2^64.
func (c *Compiled) Kind() uint64 { return c.kind }

// KindText says the same as Kind in a few letters without braces, as in "login:F1m":
// the name, if there is one, a letter for the algorithm, and the period.
func (c *Compiled) KindText() string { return c.text }
