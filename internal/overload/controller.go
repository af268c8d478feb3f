package overload

import (
	"math"
	"time"
)

// Shares is a share of the requests of each priority.
type Shares [Priorities]float64

// controller computes which share of requests to shed. It reads no clock.
type controller struct {
	limits  Limits
	usage   Usage   // smoothed
	offered Shares  // requests per second, smoothed
	allowed float64 // share of all requests
}

const (
	// smoothing is the time constant of the usage. It is longer than a garbage collection,
	// and short compared with how fast the share changes.
	smoothing = 0.5 // s

	// gain is how fast the share changes: by what factor in a second, if the usage is away
	// from its limit by that factor. The product of gain and smoothing is 1, at which it
	// does not swing.
	gain = 2.0

	// If everything is used, nothing says by how much the demand is above it.
	saturated     = 0.98
	saturatedRate = 0.5 // e-folds per second

	maxFall = 2.0 // e-folds per second
	maxRise = 1.0

	// least is the share of requests that is allowed at least, besides critical ones. From
	// there, a process that has recovered is back in some seconds.
	least = 0.005
)

func newController(l Limits) *controller { return &controller{limits: l, allowed: 1} }

// update takes into account how much was used in the time that has passed, and how many requests
// there were in it. It returns the share to shed of each priority.
func (c *controller) update(u Usage, requests Shares, passed time.Duration) Shares {
	seconds := passed.Seconds()
	if seconds <= 0 {
		return c.shed()
	}
	weight := 1 - math.Exp(-seconds/smoothing)
	c.usage.CPU += weight * (math.Min(u.CPU, 1) - c.usage.CPU)
	c.usage.Memory += weight * (math.Min(u.Memory, 1) - c.usage.Memory)
	for i := range c.offered {
		c.offered[i] += weight * (requests[i]/seconds - c.offered[i])
	}
	fall := math.Max(rate(c.usage.CPU, c.limits.CPU), rate(c.usage.Memory, c.limits.Memory))
	c.allowed *= math.Exp(-fall * math.Min(seconds, 1))
	c.allowed = math.Max(c.floor(), math.Min(1, c.allowed))
	return c.shed()
}

// rate is how fast the share falls, in e-folds per second; below 0 if it rises.
func rate(usage, limit float64) float64 {
	if limit == 0 || usage <= 0 {
		return -maxRise
	}
	r := gain * math.Log(usage/limit)
	if usage >= saturated {
		r = math.Max(r, saturatedRate)
	}
	return math.Max(-maxRise, math.Min(maxFall, r))
}

// floor is the lowest share that makes a difference: critical requests are never shed.
func (c *controller) floor() float64 {
	total := c.total()
	if total == 0 {
		return least
	}
	critical := c.offered[Critical] / total
	return critical + least*(1-critical)
}

func (c *controller) total() (sum float64) {
	for _, n := range c.offered {
		sum += n
	}
	return sum
}

// shed divides the requests that are allowed among the priorities.
func (c *controller) shed() (shed Shares) {
	if c.allowed >= 1 {
		return shed
	}
	left := c.allowed*c.total() - c.offered[Critical]
	for p := High; p >= Low; p-- {
		switch {
		case left <= 0:
			shed[p] = 1
		case left < c.offered[p]:
			shed[p] = 1 - left/c.offered[p]
		}
		left -= c.offered[p]
	}
	return shed
}
