package weir

import (
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/notation"
)

// Compiled is a valid [Limit], prepared for use. It is immutable and can be shared.
// Stores accept only compiled limits, so no store checks a limit again.
type Compiled struct {
	limit Limit

	period   int64 // microseconds
	capacity int64 // the most units that can ever be taken at once
	kind     uint64
	text     string // says the same as kind
	policy   string

	// The bucket's rate in lowest terms: n parts drain each microsecond, and a
	// unit is p parts, so that N/Period = n/p exactly. full is capacity × p.
	n, p, full int64

	width   int64 // microseconds of a sub-window
	buckets int64

	rankBits int // of an entry of a log

	most int64 // units that can be in use, debts included; of a bucket, parts

	calendar *calendar // nil unless the periods are those of the calendar

	quick bool // the state alone decides: a bucket without a queue, or a fixed window that counts no denied requests
}

// Compile validates the limit and prepares it for use.
func (l Limit) Compile() (*Compiled, error) {
	if err := l.validateFields(); err != nil {
		return nil, err
	}
	c := &Compiled{limit: l, period: l.Period.Microseconds(), capacity: l.N, calendar: newCalendar(l)}
	c.rankBits = logRankBits(c.period)
	switch {
	case l.Algorithm.leaks():
		if l.Burst != 0 {
			c.capacity = l.Burst
		}
		c.n, c.p = lowestTerms(l.N, c.period)
		if c.capacity > (exact-1)/c.p {
			return nil, invalid("limit", "%s with a burst of %d needs numbers beyond 2^53 to be exact; lower the burst to %d, or choose an N that divides the %s better",
				l.Rate(), c.capacity, (exact-1)/c.p, notation.FormatDuration(l.Period))
		}
		c.full = c.capacity * c.p
		if c.full/c.n > maxRefill {
			return nil, invalid("burst", "%d units at %s take more than 100 years to refill; lower the burst, or raise the rate", c.capacity, l.Rate())
		}
	case l.Algorithm == SlidingBuckets:
		c.buckets = int64(l.Buckets)
		if c.buckets == 0 {
			c.buckets = min(defaultBuckets, c.period)
		}
		c.width = (c.period + c.buckets - 1) / c.buckets
		if most := (exact - 1) / (c.buckets + 1); l.N > most {
			return nil, invalid("limit", "%d units in each of %d sub-windows add up beyond 2^53; with so many sub-windows N is at most %d", l.N, c.buckets, most)
		}
	}
	c.most = c.mostInUse()
	c.quick = l.Algorithm.leaks() && !l.Shape || l.Algorithm == FixedWindow && !l.CountDenied
	c.kind, c.text, c.policy = c.kindNumber(), c.kindText(), l.Policy()
	return c, nil
}

// MustCompile parses and compiles a limit from source code. It panics if the limit is
// invalid.
func MustCompile(s string) *Compiled {
	c, err := MustParseLimit(s).Compile()
	if err != nil {
		panic(err)
	}
	return c
}

// lowestTerms reduces n units per period microseconds.
func lowestTerms(n, period int64) (int64, int64) {
	g := gcd(n, period)
	return n / g, period / g
}

// Limit returns the limit that was compiled.
func (c *Compiled) Limit() Limit { return c.limit }

// Policy returns [Limit.Policy] of the limit, which is written once: answers have it.
func (c *Compiled) Policy() string { return c.policy }

// Capacity returns the most units that can be taken at once: N, or the burst of a
// bucket.
func (c *Compiled) Capacity() int64 { return c.capacity }

// FullReset returns how long it takes at most until a key that has used the whole capacity,
// and owes nothing, is fully reset.
func (c *Compiled) FullReset() time.Duration {
	micros := c.period
	switch c.limit.Algorithm {
	case TokenBucket, LeakyBucket:
		micros = divUp(c.full, c.n)
	case SlidingWindow: // the window, and then as the previous one
		micros = 2 * c.period
	case SlidingBuckets:
		micros += c.width
	}
	return Micros(micros).duration()
}

// Algorithm returns the algorithm of the limit.
func (c *Compiled) Algorithm() Algorithm { return c.limit.Algorithm }

// ReturnsExpired reports whether the units of a hold come back when it expires; see Limit.Release.
func (c *Compiled) ReturnsExpired() bool { return c.limit.Release }

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
	TokenBucket: "T", LeakyBucket: "K", FixedWindow: "F", SlidingWindow: "W", SlidingLog: "L", SlidingBuckets: "B", InFlight: "C",
}

// escapeName keeps names from being taken for what follows them.
var escapeName = strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D", ":", "%3A")

// kindText is for people, and for stores that keep states by text: "login:F1m".
func (c *Compiled) kindText() string {
	text := letters[c.limit.Algorithm] + notation.FormatDuration(c.limit.Period)
	if c.limit.Algorithm == SlidingBuckets {
		text += "/" + strconv.FormatInt(c.buckets, 10)
	}
	if c.limit.Name != "" {
		text = escapeName.Replace(c.limit.Name) + ":" + text
	}
	return text
}

// Kind is equal for limits that share their usage: same name, algorithm, period and
// sub-windows. A store keeps one [State] for each key and kind, so changing N, Burst, Zone
// or Starts resets no client. Kind is exact for limits without names; two names collide with
// probability 2^-64.
func (c *Compiled) Kind() uint64 { return c.kind }

// KindText returns the same information as Kind in a short text without braces, such as
// "login:F1m": the name, if any, a letter for the algorithm, and the period.
func (c *Compiled) KindText() string { return c.text }

// Numbers holds the numbers that the arithmetic uses, for stores that implement it in
// another language.
type Numbers struct {
	Period         int64 // microseconds
	Capacity       int64 // the most units that can be taken at once
	Drain, Unit    int64 // bucket: parts that drain per microsecond, parts per unit
	Full           int64 // bucket: Capacity × Unit
	Width, Buckets int64 // sub-windows: microseconds of each, and their number
}

// Numbers returns the numbers of the limit. Numbers that its algorithm does not use are
// 0.
func (c *Compiled) Numbers() Numbers {
	return Numbers{
		Period: c.period, Capacity: c.capacity,
		Drain: c.n, Unit: c.p, Full: c.full,
		Width: c.width, Buckets: c.buckets,
	}
}

// debts is how many times its capacity a key can owe.
const debts = 10

func (c *Compiled) mostInUse() int64 {
	units := c.limit.N
	if c.limit.Algorithm.leaks() {
		units = c.full
	}
	return min((1+debts)*units, c.mostCounted())
}

// mostCounted keeps every sum below 2^53, and the units of a log within its ranks.
func (c *Compiled) mostCounted() int64 {
	switch c.limit.Algorithm {
	case FixedWindow, SlidingWindow:
		return exact / 2 // two windows add up
	case SlidingLog, InFlight:
		return 1<<c.rankBits - 1
	case SlidingBuckets:
		return exact - 1 - c.buckets*c.limit.N // denied requests may fill the other sub-windows
	}
	return exact - 1
}

// MaxUsage returns the most units that a key can have in use, debts included; see
// [Op.Always]. That is 11 times the capacity, or less where that does not fit: a sliding
// log with N above 190,000 or a period over 100 days, and limits near the largest N or
// Burst.
func (c *Compiled) MaxUsage() int64 {
	if c.limit.Algorithm.leaks() {
		return c.most / c.p
	}
	return c.most
}
