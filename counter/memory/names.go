package memory

import (
	"context"

	"github.com/weirhq/weir/counter"
)

// maxWalked is how many entries a list of names looks at, while the store is locked.
const maxWalked = 10_000

var kinds = map[kind]counter.Kind{
	kindCounter: counter.KindCounter, kindDistinct: counter.KindDistinct, kindDistribution: counter.KindDistribution,
	kindBoard: counter.KindBoard, kindSliding: counter.KindBoard, kindHot: counter.KindHot,
}

// Names implements counter.Store. If there are more than n, it lists those that changed last.
func (s *Store) Names(ctx context.Context, n int) (counter.Names, error) {
	now, err := s.lock(ctx, counter.ValidateNames(n))
	if err != nil {
		return counter.Names{}, err
	}
	defer s.mu.Unlock()
	var found []counter.Named
	e := s.room.newest
	for walked := 0; e != nil && walked < maxWalked && len(found) <= n; walked++ {
		kind, listed := kinds[e.id.kind]
		if listed && now < e.expires {
			one := counter.Named{Kind: kind, Name: e.id.name, Group: e.id.group, Window: e.id.window, Zone: e.id.zone, Span: e.id.span}
			if h, ok := e.body.(*hot); ok {
				one.Threshold, one.Cool = h.threshold, h.cool
			}
			found = append(found, one)
		}
		e = e.older
	}
	if len(found) > n {
		return counter.NewNames(found[:n], n, true), nil
	}
	return counter.NewNames(found, n, e != nil), nil
}
