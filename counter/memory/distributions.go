package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
)

// distributions are the windows of a distribution, the latest last.
type distributions struct{ windows []distribution }

type distribution struct {
	index int64
	counter.Distribution
}

// weight is in entries of about 400 bytes: a bucket has 16.
func (d *distributions) weight() int {
	n := 1
	for i := range d.windows {
		n += 1 + len(d.windows[i].Buckets)/16
	}
	return n
}

func (d *distributions) search(index int64) (int, bool) {
	return slices.BinarySearchFunc(d.windows, index, func(x distribution, index int64) int { return cmp.Compare(x.index, index) })
}

// at makes a window if it is not there, and drops those that can no longer be read.
func (d *distributions) at(index int64, kept int) *counter.Distribution {
	i, found := d.search(index)
	if !found {
		d.windows = slices.Insert(d.windows, i, distribution{index: index})
		d.windows = slices.DeleteFunc(d.windows, func(x distribution) bool {
			return x.index <= index-int64(kept) || x.index > index+int64(kept)
		})
		i, _ = d.search(index)
	}
	return &d.windows[i].Distribution
}

func (s *Store) distributions(k *counter.Key, now weir.Micros) (*entry, *distributions) {
	return find[*distributions](&s.room, distributionIdent(k), now)
}

func distributionIdent(k *counter.Key) ident {
	return ident{kind: kindDistribution, window: k.Window, zone: counter.ZoneName(k.Zone), group: k.Group, name: k.Name}
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
		d.at(k.Window.Index(now, k.Zone), s.kept.Distributions(k.Window)).Merge(&added[i])
		s.room.keep(e, now, now+micros(s.kept.DistributionAfter(k.Window)))
	}
	return nil
}

// added is what is added, unless a sum leaves its range or there is no room, reckoned as fits
// does.
func (s *Store) added(samples []counter.Sample, now weir.Micros) ([]counter.Distribution, error) {
	all := make([]counter.Distribution, len(samples))
	sums := map[ident]float64{}
	made, grows := 0, false
	for i := range samples {
		var err error
		if all[i], err = samples[i].Distribution(); err != nil {
			return nil, err
		}
		k := &samples[i].Key
		id := distributionIdent(k)
		sum, known := sums[id]
		if _, d := s.distributions(k, now); d == nil && !known {
			made++
		} else if d != nil && !known {
			grows = true
			if at, found := d.search(k.Window.Index(now, k.Zone)); found {
				sum = float64(d.windows[at].Sum)
			}
		}
		sums[id] = sum + float64(all[i].Sum)
		if sums[id] > float64(counter.MaxAmount) {
			return nil, counter.ErrRange
		}
	}
	return all, s.room.claim(now, made, grows)
}

// Distributions implements counter.Store.
func (s *Store) Distributions(ctx context.Context, n int, keys ...counter.Key) ([][]counter.DistributionPoint, error) {
	now, err := s.lock(ctx, counter.ValidateDistributions(n, keys, s.kept))
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	all := make([][]counter.DistributionPoint, len(keys))
	for i := range keys {
		k := &keys[i]
		first := k.Window.Index(now, k.Zone) - int64(n) + 1
		all[i] = make([]counter.DistributionPoint, n)
		_, d := s.distributions(k, now)
		for j := range all[i] {
			all[i][j].Start = k.Window.Start(first+int64(j), k.Zone)
			if d == nil {
				continue
			}
			if at, found := d.search(first + int64(j)); found {
				all[i][j].Distribution = d.windows[at].Distribution
				all[i][j].Buckets = slices.Clone(all[i][j].Buckets)
			}
		}
	}
	return all, nil
}
