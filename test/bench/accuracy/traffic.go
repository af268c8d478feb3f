package accuracy

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/weirhq/weir"
)

// traffic is one kind of generated traffic. The same seed gives the same requests for
// every subject.
type traffic struct {
	name    string
	about   string
	n       int64
	sources int

	// source drives one source through the trial. What take answers is of use
	// to an attacker only.
	source func(i int, random *rand.Rand, take func(weir.Micros) weir.Decision)
}

// dawn is when all traffic begins: a round instant, so that the boundaries of
// every window are at multiples of the period from here.
const dawn = weir.Micros(1_700_006_400_000_000)

// period is that of every limit.
const period = time.Minute

func micros(d time.Duration) weir.Micros { return weir.Micros(d.Microseconds()) }

// zipf is traffic as large sites see it: the k-th source sends 1/k of what the
// first does, at random instants.
func zipf(sources int, requests float64, n int64) traffic {
	const length = time.Hour
	harmonic := 0.0
	for k := sources; k >= 1; k-- {
		harmonic += 1 / float64(k)
	}
	return traffic{
		name:    "zipf",
		about:   "an hour of Zipf-distributed sources with Poisson arrivals",
		n:       n,
		sources: sources,
		source: func(i int, random *rand.Rand, take func(weir.Micros) weir.Decision) {
			end := float64(length.Microseconds())
			gap := end * harmonic * float64(i+1) / requests
			for at := random.ExpFloat64() * gap; at < end; at += random.ExpFloat64() * gap {
				take(dawn + weir.Micros(at))
			}
		},
	}
}

// bursts come at any time, of half to three times the limit, within at most a
// fiftieth of a period.
func bursts(sources, count int, n int64) traffic {
	return traffic{
		name:    "bursts",
		about:   "sources that are silent for up to two periods, then send 0.5 N to 3 N requests within at most 2 % of a period",
		n:       n,
		sources: sources,
		source: func(_ int, random *rand.Rand, take func(weir.Micros) weir.Decision) {
			period := float64(period.Microseconds())
			at := float64(dawn)
			for range count {
				at += random.Float64() * 2 * period
				size := int((0.5 + 2.5*random.Float64()) * float64(n))
				gap := random.Float64() * period / 50 / float64(size)
				for range size {
					at += gap
					take(weir.Micros(at))
				}
			}
		},
	}
}

// sawtooth rates rise from nothing to three times the limit, and fall at once.
func sawtooth(sources, teeth int, n int64) traffic {
	return traffic{
		name:    "sawtooth",
		about:   "sources whose rate rises from 0 to 3 N a period within 2.5 periods and then drops to 0, with Poisson arrivals",
		n:       n,
		sources: sources,
		source: func(_ int, random *rand.Rand, take func(weir.Micros) weir.Decision) {
			period := float64(period.Microseconds())
			tooth := 2.5 * period
			expected := 3 * float64(n) * 2.5 / 2 // requests in a tooth
			phase := random.Float64() * tooth
			// The number of arrivals up to x of a tooth is expected × x², so
			// the inverse of that turns even arrivals into rising ones.
			for count := random.ExpFloat64(); count < expected*float64(teeth); count += random.ExpFloat64() {
				whole, part := math.Modf(count / expected)
				take(dawn + weir.Micros(phase+tooth*(whole+math.Sqrt(part))))
			}
		},
	}
}

// attack is a client who knows where the windows are and reads every answer: it
// takes all it can at one instant, and from then on each unit at the very
// microsecond at which it is to be had. The first source begins at the last
// microsecond of a window; the others spread over the window, and a few begin
// with half of what they could have.
func attack(sources int, n int64) traffic {
	const periods = 6
	return traffic{
		name:    "attack",
		about:   "clients that take N units at the worst moment of a window, then each unit as soon as it is free",
		n:       n,
		sources: sources,
		source: func(i int, _ *rand.Rand, take func(weir.Micros) weir.Decision) {
			period := micros(period)
			start := dawn + period - 1 - period*weir.Micros(i)/weir.Micros(sources)
			now, first := start, int64(0)
			if i%4 == 3 {
				first = n / 2
			}
			for range first {
				take(now)
			}
			if first > 0 {
				now += period / 3
			}
			for now < start+periods*period {
				if d := take(now); !d.Allowed {
					now += max(1, micros(d.RetryAfter))
				}
			}
		},
	}
}
