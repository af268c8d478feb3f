package memory

import (
	"context"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
)

// distributions is a distribution in its windows.
type distributions struct{ windows windows[counter.Distribution] }

// weight is in entries of about 400 bytes: a bucket has 16.
func (d *distributions) weight() int {
	n := 1
	for i := range d.windows {
		n += 1 + len(d.windows[i].value.Buckets)/16
	}
	return n
}

func distributionIdent(k *counter.Key) ident {
	id := identOf(k)
	id.kind = kindDistribution
	return id
}

// Observe implements counter.Store.
func (s *Store) Observe(ctx context.Context, samples ...counter.Sample) error {
	now, err := s.lock(ctx, counter.ValidateObserve(samples))
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	added, err := s.added(samples, now)
	if err != nil {
		return err
	}
	for i := range samples {
		k := &samples[i].Key
		e, d := findOr(&s.room, distributionIdent(k), now, func() *distributions { return &distributions{} })
		d.windows.open(k.Window.Index(now, k.Zone), s.kept.Distributions(k.Window), 0).Merge(&added[i])
		s.room.keep(e, now, now+micros(s.kept.DistributionAfter(k.Window)))
	}
	return nil
}

// added is what is added, unless a sum leaves its range or there is no room.
func (s *Store) added(samples []counter.Sample, now weir.Micros) ([]counter.Distribution, error) {
	all := make([]counter.Distribution, len(samples))
	after := sums{of: map[ident]float64{}}
	for i := range samples {
		var err error
		if all[i], err = samples[i].Distribution(); err != nil {
			return nil, err
		}
		k := &samples[i].Key
		id := distributionIdent(k)
		_, d := findBody[*distributions](&s.room, id, now)
		var has *counter.Amount
		if d != nil {
			after.grows = true
			if current := d.windows.at(k.Window.Index(now, k.Zone)); current != nil {
				has = &current.Sum
			}
		}
		if err := after.addAmount(id, d != nil, has, all[i].Sum); err != nil {
			return nil, err
		}
	}
	return all, s.room.claim(now, after.made, after.grows)
}

// Distributions implements counter.Store.
func (s *Store) Distributions(ctx context.Context, n int, keys ...counter.Key) ([][]counter.DistributionPoint, error) {
	return each(ctx, s, counter.ValidateDistributions(n, keys, s.kept), len(keys), nil, func(i int, now weir.Micros) []counter.DistributionPoint {
		k := &keys[i]
		first, points := k.Window.Index(now, k.Zone)-int64(n)+1, make([]counter.DistributionPoint, n)
		_, d := findBody[*distributions](&s.room, distributionIdent(k), now)
		for j := range points {
			points[j].Start = k.Window.Start(first+int64(j), k.Zone)
			if d == nil {
				continue
			}
			if had := d.windows.at(first + int64(j)); had != nil {
				points[j].Distribution = *had
				points[j].Buckets = slices.Clone(had.Buckets)
			}
		}
		return points
	})
}
