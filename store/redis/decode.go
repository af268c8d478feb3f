package redis

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirhq/weir"
)

var errAnswer = errors.New("redis: the script's answer cannot be read")

// decode gives each check its decisions.
func (r *request) decode(answer string) error {
	u := unpacker(answer)
	count, err := u.array()
	if err != nil {
		return err
	}
	now, err := u.number()
	if err != nil {
		return err
	}
	if r.at = weir.Micros(now); count == 1 && r.until != 0 {
		return errOtherPeriod
	}
	for i := range r.chains {
		kept := int64(0)
		for c := r.chains[i].first; c != nil; c = c.next {
			if kept, err = u.decisions(c, now, kept); err != nil {
				return err
			}
		}
	}
	if r.chains == nil {
		for _, c := range r.batch {
			if _, err := u.decisions(c, now, 0); err != nil {
				return err
			}
		}
	}
	if len(u) > 0 {
		return errAnswer
	}
	return nil
}

// decisions reads those of a check. kept is how many units on lease would be free, and is returned, too: of singles for
// one key it is told when it changes.
func (u *unpacker) decisions(c *check, now, kept int64) (int64, error) {
	if c.verb == settle || c.verb == extend {
		return kept, u.outcomes(c)
	}
	c.decisions = slices.Grow(c.decisions[:0], len(c.ops))[:len(c.ops)]
	c.at = weir.Micros(now)
	for i := range c.ops {
		d := &c.decisions[i]
		if i > 0 {
			kept = 0
		}
		if err := u.decision(d, c.ops[i].Limit.Capacity(), c.verb.takes() && c.ops[i].Always, kept); err == errForeign {
			c.err = c.undecided(i, d.Remaining)
		} else if err != nil {
			return kept, err
		}
		kept = d.Leased
		d.ResetAt = weir.Micros(now + d.ResetAfter.Microseconds())
		if c.verb == lease && c.err == nil {
			if err := u.lease(&c.leases[i]); err != nil {
				return kept, err
			}
		}
	}
	if c.verb.takes() && (c.owes() || weir.Allowed(c.decisions)) {
		for i := range c.decisions {
			if d := &c.decisions[i]; d.Excess < c.ops[i].Cost && !c.ops[i].Look {
				d.Receipt = weir.Receipt(d.ResetAt)
			}
		}
	}
	return kept, nil
}

// undecided is why the i-th op was not decided: more holds have expired than can end in a call, or somebody
// else has put something in the place of its state, or of its holds.
func (c *check) undecided(i int, why int64) error {
	key := c.keys[i]
	switch why {
	case moreDue / 4:
		return errMoreDue
	case holdsForeign / 4:
		key = c.listKey(i)
	}
	return fmt.Errorf("redis: the key %q %w", key, errForeign)
}

var errForeign = errors.New("contains data that this version of weir did not write; delete the key, or use another prefix")

// onlyReserved is the first number of a denial for which what is missing is only reserved; see lua/reserved.lua.
const onlyReserved = 15

// onLease is what comes before a decision on a key with units on lease, and how many these are.
const onLease = 19

// atShare is what comes before a denial by the client's share of a key's open holds; see lua/holds.lua.
const atShare = 23

// decision reads one; kept is as of the one before it. The first number tells what follows, and what remains.
func (u *unpacker) decision(d *weir.Decision, capacity int64, owes bool, kept int64) error {
	first, err := u.number()
	if err != nil {
		return err
	}
	isAtShare := first == atShare
	if isAtShare {
		if first, err = u.number(); err != nil {
			return err
		}
	}
	if first == onLease {
		if kept, first, err = u.two(); err != nil {
			return err
		}
	}
	*d = weir.Decision{Limit: capacity, Remaining: first / 4, Leased: kept, AtShare: isAtShare}
	var reset, other int64
	switch first % 4 {
	case 0: // denied
		reset, other, err = u.two()
		if d.RetryAfter = micros(other); other < 0 {
			d.RetryAfter = weir.Never
		}
		if owes && err == nil {
			d.Excess, err = u.number()
		}
	case 1: // allowed
		d.Allowed = true
		reset, err = u.number()
	case 2: // allowed, to be held
		d.Allowed = true
		reset, other, err = u.two()
		d.Delay = micros(other)
	default:
		if first != onlyReserved {
			return errForeign
		}
		if d.Remaining, d.Reserved, err = u.two(); err == nil {
			reset, other, err = u.two()
			d.RetryAfter = micros(other)
		}
	}
	d.ResetAfter = micros(reset)
	return err
}

func (u *unpacker) two() (first, second int64, err error) {
	if first, err = u.number(); err == nil {
		second, err = u.number()
	}
	return first, second, err
}

func micros(x int64) time.Duration { return time.Duration(x) * time.Microsecond }
