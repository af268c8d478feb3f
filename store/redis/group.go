package redis

import (
	"context"
	"fmt"
	"sync"

	"github.com/weirhq/weir"
)

// maxOps bounds a script call, and so for how long Redis does nothing else.
const maxOps = 512

// check is a request on its way: put into a group, answered by done.
type check struct {
	ctx  context.Context
	verb int
	ops  []weir.Op

	decisions []weir.Decision
	err       error
	done      chan struct{}
}

// group gathers the checks that arrive while a call is under way; they travel
// together in the next one. Entering Lua costs Redis more than a check does, so
// sharing the way in is most of the speed. A check that comes alone leaves at
// once: nothing ever waits for a timer.
type group struct {
	mu      sync.Mutex
	waiting []*check
	busy    bool // somebody is sending
}

// do sends the ops with whoever else is waiting. When the context ends first, the
// others are not held up, and the ops may or may not have been charged.
func (s *Store) do(ctx context.Context, verb int, ops []weir.Op) ([]weir.Decision, error) {
	c := &check{
		ctx: ctx, verb: verb,
		ops:  append([]weir.Op(nil), ops...), // the caller's may change once its context has ended
		done: make(chan struct{}),
	}
	s.group.mu.Lock()
	s.group.waiting = append(s.group.waiting, c)
	if !s.group.busy {
		s.group.busy = true
		go s.send()
	}
	s.group.mu.Unlock()
	select {
	case <-c.done:
		return c.decisions, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// send makes one call after another until nobody waits.
func (s *Store) send() {
	for batch := s.group.next(); len(batch) > 0; batch = s.group.next() {
		err := s.call(batch)
		for _, c := range batch {
			c.err = err
			close(c.done)
		}
	}
}

// next takes what fits into a call, oldest first, without those who have left.
// When there is nobody, the sender's work is over.
func (g *group) next() []*check {
	g.mu.Lock()
	defer g.mu.Unlock()
	var batch []*check
	ops, taken := 0, 0
	for _, c := range g.waiting {
		if c.ctx.Err() == nil {
			if ops += len(c.ops); ops > maxOps && len(batch) > 0 {
				break
			}
			batch = append(batch, c)
		}
		taken++
	}
	rest := copy(g.waiting, g.waiting[taken:])
	clear(g.waiting[rest:])
	g.waiting = g.waiting[:rest]
	g.busy = len(batch) > 0
	return batch
}

// call asks Redis once, and gives each check its decisions.
func (s *Store) call(batch []*check) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	r := s.newRequest(batch)
	now := int64(0)
	if s.clock != nil {
		now = int64(s.clock()) + 1
	}
	answer, err := script.Exec(ctx, s.client, r.keys, []string{r.encode(now)}).ToString()
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return r.decode(answer)
}
