package simulate

import (
	"math"
	"math/rand/v2"

	"github.com/weirhq/weir"
)

// Pattern is traffic with a name, scaled to a limit of N in a period.
type Pattern struct {
	Name  string
	About string // one line

	make func(c *collector, limit weir.Limit, seed uint64) error
}

// Patterns returns all patterns, in the order in which to read about them.
func Patterns() []Pattern {
	return []Pattern{
		{"steady", "exactly the rate of the limit, for four periods", steady},
		{"overload", "twice the rate of the limit, for four periods", overload},
		{"burst", "2N at once, repeated twice, after one and a half periods each", burst},
		{"boundary", "N in the last quarter of a window, N in the first of the next", boundary},
		{"sawtooth", "a rate that rises from 0 to twice the limit, repeatedly", sawtooth},
		{"poisson", "random arrivals at the rate, for four periods (see --seed)", poisson},
	}
}

func patternNamed(name string) (Pattern, bool) {
	for _, p := range Patterns() {
		if p.Name == name {
			return p, true
		}
	}
	return Pattern{}, false
}

func patternNames() []string {
	var names []string
	for _, p := range Patterns() {
		names = append(names, p.Name)
	}
	return names
}

func steady(c *collector, limit weir.Limit, _ uint64) error { return c.rates(limit.N, limit) }

func overload(c *collector, limit weir.Limit, _ uint64) error { return c.rates(2*limit.N, limit) }

// rates adds n requests in each of four periods, evenly.
func (c *collector) rates(n int64, limit weir.Limit) error {
	p := periodsOf(limit).first()
	for i := range 4 {
		if err := c.spread(n, p[i], p[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func burst(c *collector, limit weir.Limit, _ uint64) error {
	p := periodsOf(limit).first()
	for _, at := range []weir.Micros{0, p[1] + (p[2]-p[1])/2, p[3]} {
		if err := c.spread(2*limit.N, at, at); err != nil {
			return err
		}
	}
	return nil
}

// boundary is the attack on fixed windows: each half is within the limit of its
// own window, and both are within half a period.
func boundary(c *collector, limit weir.Limit, _ uint64) error {
	p := periodsOf(limit).first()
	if err := c.spread(limit.N, p[1]-max(1, p[1]/4), p[1]); err != nil {
		return err
	}
	return c.spread(limit.N, p[1], p[1]+max(1, (p[2]-p[1])/4))
}

// sawtooth has two teeth of 2N requests in two periods. When a rate climbs
// evenly, the number of requests so far grows with the square of the time.
func sawtooth(c *collector, limit weir.Limit, _ uint64) error {
	if err := c.room(4 * limit.N); err != nil {
		return err
	}
	p := periodsOf(limit).first()
	for _, tooth := range [][2]weir.Micros{{p[0], p[2]}, {p[2], p[4]}} {
		for i := range 2 * limit.N {
			rise := math.Sqrt(float64(i) / float64(2*limit.N))
			if err := c.one(tooth[0] + weir.Micros(rise*float64(tooth[1]-tooth[0]))); err != nil {
				return err
			}
		}
	}
	return nil
}

// poisson draws the times rather than the gaps: given their number, the
// arrivals of a Poisson process are independent and uniform. It needs integers
// only, so that a seed means the same traffic on every machine.
func poisson(c *collector, limit weir.Limit, seed uint64) error {
	if err := c.room(4 * limit.N); err != nil {
		return err
	}
	p := periodsOf(limit).first()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 4 * limit.N {
		if err := c.one(weir.Micros(random.Int64N(int64(p[4])))); err != nil {
			return err
		}
	}
	return nil
}
