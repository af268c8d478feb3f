package testoverload

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirhq/weir/internal/overload"
)

// Kind is how the times vary that requests take a server.
type Kind string

const (
	Even   Kind = "even"   // by a tenth
	Varied Kind = "varied" // exponentially distributed
	Mixed  Kind = "mixed"  // one of twenty takes 20 × as long as the others
)

func (k Kind) draw(r *rand.Rand, mean time.Duration) time.Duration {
	x := r.ExpFloat64()
	switch {
	case k == Even:
		x = 0.9 + 0.2*r.Float64()
	case k == Mixed && r.IntN(20) == 0:
		x = 20 / 1.95
	case k == Mixed:
		x = 1 / 1.95
	}
	return time.Duration(x * float64(mean))
}

// Case is a service and what happens to it.
type Case struct {
	What     string // what happens
	Kind     Kind
	Servers  int
	Load     float64       // × capacity
	Capacity float64       // requests per second while measured
	Unloaded time.Duration // p99 of a service with a tenth of the load
	World

	scarce bool // the capacity was less before
}

const (
	mean   = 10 * time.Millisecond
	change = 15 * time.Second // when something happens
	settle = 10 * time.Second // when the measurement begins, after it
	length = 20 * time.Second // of the measurement
)

// Loads are the loads of Cases, × capacity.
var Loads = []float64{0.5, 0.8, 1, 2, 5, 20}

// Cases are all that happens to a service with so many servers, with these loads.
func Cases(kind Kind, servers int, loads ...float64) []Case {
	var all []Case
	for _, h := range []struct {
		what                        string
		serversBefore, serversAfter float64
		before, after               float64 // service times
	}{
		{"nothing changes", 1, 1, 1, 1},
		{"half the servers fail", 1, 0.5, 1, 1},
		{"twice the servers", 1, 2, 1, 1},
		{"a dependency gets 5 × slower", 1, 1, 1, 5},
		{"the same, with 5 × the servers", 1, 5, 1, 5},
		{"a cold start, 5 × slower for 15 s", 1, 1, 5, 1},
	} {
		after := int(h.serversAfter * float64(servers))
		unloaded := unloaded(kind, after, time.Duration(h.after*float64(mean)))
		for _, load := range loads {
			c := Case{What: h.what, Kind: kind, Servers: servers, Load: load}
			c.Capacity = float64(after) / (h.after * mean.Seconds())
			c.Unloaded = unloaded
			c.scarce = h.serversBefore/h.before < h.serversAfter/h.after
			c.World = World{
				Servers: func(t time.Duration) int {
					if t < change {
						return int(h.serversBefore * float64(servers))
					}
					return after
				},
				Service: func(t time.Duration, r *rand.Rand) time.Duration {
					if t < change {
						return kind.draw(r, time.Duration(h.before*float64(mean)))
					}
					return kind.draw(r, time.Duration(h.after*float64(mean)))
				},
				Rate:   func(time.Duration) float64 { return load * c.Capacity },
				Length: change + settle + length,
				From:   change + settle,
			}
			all = append(all, c)
		}
	}
	return all
}

// unloaded is the p99 of a service with a tenth of its load.
func unloaded(kind Kind, servers int, mean time.Duration) time.Duration {
	r := Run(World{
		Servers: func(time.Duration) int { return servers },
		Service: func(_ time.Duration, r *rand.Rand) time.Duration { return kind.draw(r, mean) },
		Rate:    func(time.Duration) float64 { return 0.1 * float64(servers) / mean.Seconds() },
		Length:  length,
	}, nil, 7)
	return r.Quantile(0.99)
}

// Figure is how a case went.
type Figure struct {
	Goodput float64 // of capacity, or of the load if that is less
	P99     float64 // × Unloaded
	Denied  float64 // share of requests, from the start if the capacity was never less
	By      [overload.Priorities]Share
}

// Play runs a case.
func (c Case) Play(l Limiter, seed uint64) Figure {
	r := Run(c.World, l, seed)
	seconds := (c.Length - c.From).Seconds()
	offered, denied := r.Offered, r.Denied
	if !c.scarce {
		offered, denied = r.OfferedInAll, r.DeniedInAll
	}
	return Figure{
		Goodput: float64(r.Good) / seconds / (c.Capacity * min(1, c.Load)),
		P99:     float64(r.Quantile(0.99)) / float64(c.Unloaded),
		Denied:  float64(denied) / float64(offered),
		By:      r.By,
	}
}

func (c Case) String() string {
	return fmt.Sprintf("%s, %d servers, %s, %v ×", c.Kind, c.Servers, c.What, c.Load)
}

// What one window of a limiter that rests has, and how many of its requests may fail without a
// change of the limit.
const (
	windowRequests = 250
	fewFailures    = 24
)

// Outcome finds out what a limiter takes a request for: "success", "failure", or "ignored" if it
// does not count. The limiter is new, and nothing shows but its limit, which falls if more than a
// tenth of the requests of a window fail. Each call of fail is a request that fails; each of
// request is one in question. Both return when the limiter knows how it ended.
func Outcome(limit func() int, fail, request func()) string {
	before := limit()
	for range fewFailures {
		fail()
	}
	for range windowRequests - fewFailures {
		request()
	}
	if limit() < before {
		return "failure"
	}
	for range windowRequests - fewFailures {
		fail()
	}
	if limit() < before {
		return "ignored" // only the failures filled the window
	}
	return "success"
}
