package redis

import (
	"context"
	"time"

	"github.com/weirhq/weir"
)

// A denial says whether what is missing is only reserved; see [weir.Pending.TellReserved]. Functions that know of no
// holds cannot, and are the quickest. So if this store has opened holds on a key that are not settled yet, it has
// a denied request looked at again, with the holds. Holds that others have opened alone are found by reservations only.

// peekFor is the verb to look at ops with.
func (s *Store) peekFor(ops []weir.Op) verb {
	if s.known.holdsOn(ops) {
		return holdPeek
	}
	return verbFor(peek, ops)
}

// answer is doParts for Take and Peek.
func (s *Store) answer(ctx context.Context, dst []weir.Decision, verb verb, ops []weir.Op, partial bool) ([]weir.Decision, []error, error) {
	begun, first := time.Now(), len(dst)
	dst, failed, err := s.doParts(ctx, dst, verb, ops, partial)
	if err != nil || weir.Allowed(dst[first:]) {
		return dst, failed, err
	}
	decisions := dst[first:]
	if verb.takes() && verb != renew && !ops[0].Always && failed == nil && s.known.holdsOn(ops) {
		ctx, cancel := context.WithDeadline(ctx, begun.Add(s.timeout))
		defer cancel()
		if seen, err := s.do(ctx, nil, holdPeek, ops); err == nil { // otherwise nothing is told
			for i := range seen {
				decisions[i].Reserved = seen[i].Reserved
			}
		}
	}
	weir.ShortenRetries(decisions, ops)
	return dst, failed, nil
}
