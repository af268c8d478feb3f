package overload

import (
	"math"
)

// Priority is how important a request is; a greater one is more important. The numbers are those of package rule.
type Priority uint8

const (
	Low Priority = 1 + iota
	Normal
	High
	Critical

	// Priorities is the length of an array by priority, whose first element is not used.
	Priorities
)

func (p Priority) String() string { return [...]string{"", "low", "normal", "high", "critical"}[p] }

// demand is how many requests of each priority came lately, and how many were answered.
type demand struct {
	arrived [Priorities]float64
	ended   float64

	// several is whether requests of more than one priority came.
	several bool

	// above is what the priorities above each one need, of all that is answered; and upTo is
	// the same, with the priority itself.
	above, upTo [Priorities]float64

	// before is how many are in flight since before the limit changed last.
	before int
}

const (
	recent = 250 // requests answered until demand is looked at again

	// little is what priorities need, of all that is answered, for whose requests there is
	// always a place; and spare is how many places there are beyond the limit for that. So
	// many more than usual come at once in less than one of a thousand cases.
	little = 0.6
	spare  = 16
)

// noteEnd takes note that a request has ended, and how many are still in flight.
func (d *demand) noteEnd(inFlight int) {
	d.before = min(d.before, inFlight)
	d.ended++
	if d.ended < 2*recent { // half of them are from before
		return
	}
	sum, came := 0.0, 0
	for p := Critical; p >= Low; p-- {
		if d.arrived[p] >= 1 {
			came++
		}
		d.above[p] = sum / d.ended
		sum += d.arrived[p]
		d.upTo[p] = sum / d.ended
		d.arrived[p] /= 2
	}
	d.ended /= 2
	d.several = came > 1
}

// places is how many requests may be in flight before one of this priority is denied.
//
// If requests of one priority come, it is the limit. Otherwise, there is one priority of which a
// part must be denied: those above need less than all that is answered, and with it, they need
// more. It has the limit. Those above have places beyond the limit, the more the less they need;
// if that is little, also while the limit is low for a probe. Those below have half of the limit,
// so that they are denied first.
func (l *Limiter) places(p Priority) int {
	if !l.demand.several {
		return l.limit
	}
	above, upTo := l.demand.above[p], l.demand.upTo[p]
	limit := float64(l.limit)
	beyond := math.Max(spare, limit/4)
	rare := math.Max(0, 1-upTo) / (1 - little)
	if upTo < little {
		most := math.Max(float64(l.demand.before), math.Max(limit, 2*l.knee+2))
		return int(math.Min(l.max, most+rare*beyond))
	}
	limit = math.Min(limit, l.max-math.Min(beyond, l.max/4))
	limit += rare * math.Min(beyond, limit/2)
	limit *= 1 - math.Max(0, math.Min(1, (above-0.9)/0.4))/2
	return int(math.Max(1, math.Min(l.max, limit)))
}
