package redis

import (
	"context"

	"github.com/weirhq/weir"
)

// leaseCall is a message about a lease, which a check sends besides an op, and the answer.
type leaseCall struct {
	weir.LeaseOp // without its Op
	begins       bool

	granted, charged int64
	drop             bool
}

// leaseNumbers is how many numbers and texts are sent for each.
const leaseNumbers = 9

// leases packs what a check sends about leases.
func (p *packer) leases(c *check) {
	for i := range c.leases {
		l := &c.leases[i]
		if l.ID == (weir.LeaseID{}) {
			p.text("")
		} else {
			p.text(string(l.ID[:]))
		}
		for _, x := range [...]int64{
			l.Seq, l.Spent, l.Charged, l.Keep, l.Want, l.Term.Microseconds(),
			c.ops[i].Limit.FullReset().Microseconds(), truth(l.begins),
		} {
			p.number(x)
		}
	}
}

func (u *unpacker) lease(l *leaseCall) (err error) {
	var drop int64
	if l.granted, l.charged, err = u.two(); err == nil {
		drop, err = u.number()
	}
	l.drop = drop != 0
	return err
}

// Lease implements weir.LeaseStore. It grants nothing as long as another store on this Redis does not
// know of leases.
func (s *Store) Lease(ctx context.Context, dst []weir.LeaseAnswer, ops ...weir.LeaseOp) ([]weir.LeaseAnswer, error) {
	if err := weir.ValidateLease(ops); err != nil {
		return dst, err
	}
	if err := ctx.Err(); err != nil || len(ops) == 0 {
		return dst, err
	}
	plain, calls := make([]weir.Op, len(ops)), make([]leaseCall, len(ops))
	for i := range ops {
		plain[i], calls[i].LeaseOp = ops[i].Op, ops[i]
		plain[i].Look = ops[i].Cost == 0
		calls[i].Op = weir.Op{} // which the caller may change
		if calls[i].begins = s.knows(unitsOnLease); !calls[i].begins {
			calls[i].Want = 0
		}
	}
	checks, part := s.split(lease, plain)
	for i, p := range part {
		checks[p].leases = append(checks[p].leases, calls[i])
	}
	defer func() {
		for _, c := range checks {
			c.recycle()
		}
	}()
	var err error
	if len(checks) == 1 {
		err = s.run(ctx, checks[0])
	} else {
		err = firstOf(s.askAll(ctx, checks, false))
	}
	if err != nil {
		return dst, err
	}
	next := make([]int, len(checks))
	for _, p := range part {
		d, l := &checks[p].decisions[next[p]], &checks[p].leases[next[p]]
		dst = append(dst, weir.LeaseAnswer{Decision: *d, Granted: l.granted, Charged: l.charged, Drop: l.drop})
		next[p]++
	}
	return dst, nil
}
