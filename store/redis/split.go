package redis

import (
	"context"
	"time"

	"github.com/weirhq/weir"
)

// split makes a check of the ops of each slot, and tells for each op of which check
// it is a part. The ops are copied: the caller's may change once its context has
// ended, and so may the bytes of their keys. Where there is no cluster, there is one
// check.
func (s *Store) split(verb verb, ops []weir.Op) (checks []*check, part []int) {
	part = make([]int, len(ops))
	for i := range ops {
		key, slot := s.keyOf(&ops[i]), uint16(0)
		if s.link.cluster {
			slot = slotOf(key)
		}
		part[i] = len(checks)
		for j, c := range checks {
			if c.slot == slot {
				part[i] = j
				break
			}
		}
		if part[i] == len(checks) {
			checks = append(checks, &check{verb: verb, slot: slot, done: make(chan struct{})})
		}
		c := checks[part[i]]
		c.ops, c.keys = append(c.ops, ops[i]), append(c.keys, key)
	}
	return checks, part
}

// do has the ops decided, at once where they are on several slots, and appends the
// decisions in their order.
func (s *Store) do(ctx context.Context, dst []weir.Decision, verb verb, ops []weir.Op) ([]weir.Decision, error) {
	if err := ctx.Err(); err != nil || len(ops) == 0 {
		return dst, err
	}
	checks, part := s.split(verb, ops)
	timeout := time.NewTimer(s.timeout)
	defer timeout.Stop()
	for _, c := range checks {
		s.submit(c)
	}
	var failed error
	for _, c := range checks {
		if err := s.await(ctx, c, timeout); err != nil && failed == nil {
			failed = err
		}
	}
	if len(checks) > 1 && verb == take {
		s.agree(ctx, checks, timeout, failed)
	}
	if failed != nil {
		return dst, failed // an error never carries a verdict
	}
	next := make([]int, len(checks))
	for _, p := range part {
		dst = append(dst, checks[p].decisions[next[p]])
		next[p]++
	}
	return dst, nil
}

// agree makes all or none of what several slots have decided each for itself. When
// one has refused, or has not answered, what the others took is given back: until
// then they may refuse somebody too early, but nobody is admitted too much. Who dies
// in between leaves charges that fade like any other.
func (s *Store) agree(ctx context.Context, checks []*check, timeout *time.Timer, failed error) {
	var admitted, refunds []*check
	for _, c := range checks {
		if c.admitted() {
			admitted = append(admitted, c)
		}
	}
	if len(admitted) == len(checks) {
		return
	}
	for _, c := range admitted {
		r := c.refund()
		refunds = append(refunds, r)
		if len(r.ops) > 0 {
			s.submit(r)
		} else {
			close(r.done)
		}
	}
	if failed != nil {
		return // nobody waits for an answer
	}
	for i, c := range admitted {
		c.settle(refunds[i], s.await(ctx, refunds[i], timeout))
	}
}

// refund gives back what an admitted check has charged, but not to limits that
// count every request that they are asked about.
func (c *check) refund() *check {
	r := &check{verb: refund, slot: c.slot, done: make(chan struct{})}
	for i, op := range c.ops {
		if !op.Limit.Limit().CountDenied {
			op.Receipt = c.decisions[i].Receipt
			r.ops, r.keys = append(r.ops, op), append(r.keys, c.keys[i])
		}
	}
	return r
}

// settle makes the decisions of an admitted check those of one that was refused
// elsewhere: what was given back stands as it does now, if that is known.
func (c *check) settle(refund *check, err error) {
	at := 0
	for i, op := range c.ops {
		if !op.Limit.Limit().CountDenied {
			if err == nil {
				c.decisions[i] = refund.decisions[at]
			}
			at++
		}
		c.decisions[i].Receipt = 0
	}
}
