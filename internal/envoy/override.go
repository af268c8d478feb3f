package envoy

import (
	"fmt"
	"time"

	"github.com/weirhq/weir"
)

// maxOverrides bounds what is kept of limits that requests bring. Who sends more
// different ones than that pays for it by compiling them again.
const maxOverrides = 10_000

// override is a limit that a request brings.
type override struct {
	n, multiplier uint32
	unit          Unit
}

// Override returns a node for a limit that a request brings along, of n in as many
// units as the multiplier says; 0 is one. It counts in fixed windows, and goes on with
// the counter of a limit in the file that has the same period.
func (d *Domain) Override(n uint32, unit Unit, multiplier uint32) (*Node, error) {
	o := override{n, multiplier, unit}
	d.mu.RLock()
	node := d.overrides[o]
	d.mu.RUnlock()
	if node != nil {
		return node, nil
	}
	node, err := d.newOverride(o)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.overrides == nil || len(d.overrides) >= maxOverrides {
		d.overrides = map[override]*Node{}
	}
	d.overrides[o] = node
	return node, nil
}

func (d *Domain) newOverride(o override) (*Node, error) {
	period := o.unit.Period()
	times := time.Duration(max(1, o.multiplier))
	switch {
	case period == 0:
		return nil, fmt.Errorf("envoy: the limit of a descriptor has the unit %d, which is none; send SECOND to YEAR", o.unit)
	case period > weir.MaxPeriod/times:
		return nil, fmt.Errorf("envoy: the limit of a descriptor is for %d times a %s, which is longer than ten years; send a shorter one", times, o.unit)
	}
	node := d.brought
	node.Limits = []Limit{{N: o.n, Unit: o.unit, Multiplier: o.multiplier, Period: period * times, Algorithm: weir.FixedWindow}}
	if err := node.compileLimits(); err != nil {
		return nil, fmt.Errorf("envoy: the limit of a descriptor: %w", err)
	}
	return &node, nil
}
