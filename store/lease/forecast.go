package lease

import (
	"cmp"
	"math"
	"time"

	"github.com/weirhq/weir"
)

// Load is what requests on one key come to: so many a second, spread evenly over processes that are each a round trip from
// the store.
type Load struct {
	Processes int
	Rate      float64
	RoundTrip time.Duration
	Term      time.Duration // of a limit that has none of its own; 0 for no lease
}

// Forecast is what leases of one key come to.
type Forecast struct {
	Leased bool    // otherwise every request asks the store
	Calls  float64 // a second, of all processes
	Unused int64   // the most units that one process has and does not use; so much is lost with it
}

// Foresee returns about what a load on one key comes to. The simulation comes to between half and twice of its calls, and to no
// more unused units, as long as the period is at least 20 round trips.
func Foresee(limit *weir.Compiled, l Load) Forecast {
	term := time.Duration(0)
	if limit.Leasable() {
		term = cmp.Or(limit.Lease(), l.Term)
	}
	all, rate := Forecast{Calls: l.Rate}, l.Rate/float64(l.Processes)
	ahead := min(term, limit.Limit().Period/20)
	if ahead < minHorizon || rate*max(ahead, min(term, 2*l.RoundTrip)).Seconds() <= seldom {
		return all
	}
	e := &entry{limit: limit, ahead: ahead, term: term}
	low := rate * (l.RoundTrip*3/2 + time.Millisecond).Seconds()
	most := 2 * (rate*(ahead+l.RoundTrip).Seconds() + low)
	refill := min(ahead+l.RoundTrip, renewal(term, l.RoundTrip)-term/gathers/2).Seconds()

	// Of what is used up, a process asks with the first request after each pace, all the time; or if units come back as they were
	// used, in the rest of the period.
	calls, supply := 1/refill, float64(limit.Limit().N)/limit.Limit().Period.Seconds()
	if l.Rate > supply {
		next, share := min(max(e.pace(), l.RoundTrip).Seconds()+1/rate, refill), 1.0
		switch limit.Algorithm() {
		case weir.FixedWindow:
			next, share = ahead.Seconds()+1/rate, 1-supply/l.Rate
		case weir.SlidingLog, weir.SlidingBuckets:
			share = 1 - supply/l.Rate
		}
		calls = (1-share)*calls + share/next
	}
	return Forecast{
		Leased: true, Calls: min(l.Rate, calls*float64(l.Processes)),
		Unused: min(limit.Capacity(), int64(math.Ceil(most))),
	}
}

// gathers is how often in a term messages that go on with leases leave.
const gathers = 32

// together rounds down when such a message is due, so that those of many keys leave together, and are few calls.
func together(due, term time.Duration) time.Duration { return due - due%(term/gathers) }

// renewal is how long after it was sent a message is due that goes on with the lease.
func renewal(term, trip time.Duration) time.Duration {
	good := term - term/50 - time.Millisecond
	return good - min(max(term/4, 2*trip), good*3/4)
}
