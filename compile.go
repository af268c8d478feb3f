package weir

import "github.com/weirhq/weir/internal/duration"

// Compiled is a valid [Limit] with its arithmetic made ready. It is immutable
// and may be shared. Stores take compiled limits only, so that nothing invalid
// reaches them and nothing is checked twice.
type Compiled struct {
	limit Limit

	period   int64 // microseconds
	capacity int64 // the most units that can ever be taken at once
	kind     uint64
	text     string // says the same as kind

	// The bucket's rate in lowest terms: n parts drain each microsecond, and a
	// unit is p parts, so that N/Period = n/p exactly. full is capacity × p.
	n, p, full int64

	width   int64 // microseconds of a sub-window
	buckets int64

	rankBits int // of an entry of a log
}

// Compile validates the limit and makes it ready for use.
func (l Limit) Compile() (*Compiled, error) {
	if err := l.validateFields(); err != nil {
		return nil, err
	}
	c := &Compiled{limit: l, period: l.Period.Microseconds(), capacity: l.N}
	c.rankBits = logRankBits(c.period)
	switch {
	case l.Algorithm.leaks():
		if l.Burst != 0 {
			c.capacity = l.Burst
		}
		c.n, c.p = lowestTerms(l.N, c.period)
		if c.capacity > (exact-1)/c.p {
			return nil, invalid("limit", "%s with a burst of %d needs numbers beyond 2^53 to be exact; lower the burst to %d, or choose an N that divides the %s better",
				l.Rate(), c.capacity, (exact-1)/c.p, duration.Format(l.Period))
		}
		c.full = c.capacity * c.p
		if c.full/c.n > maxRefill {
			return nil, invalid("burst", "%d units at %s take more than a century to come back; lower the burst, or raise the rate", c.capacity, l.Rate())
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
	c.kind, c.text = c.kindNumber(), c.kindText()
	return c, nil
}

// MustCompile parses and compiles a limit that the programmer wrote, and panics
// if it is wrong.
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

// Limit returns what was compiled.
func (c *Compiled) Limit() Limit { return c.limit }

// Capacity returns the most units that can ever be taken at once: N, or the
// burst of a bucket.
func (c *Compiled) Capacity() int64 { return c.capacity }

// Algorithm returns how the limit counts.
func (c *Compiled) Algorithm() Algorithm { return c.limit.Algorithm }
