package redis

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/redislink"
)

// A distribution has a key for each window. Scripts decide by the clock of Redis which one
// is current, and can use only the keys that they are given: the ones around the time here.
// If the clocks differ by more, a script tells the time, and is asked again.

// distributionKey is a counter's key with the number of the window, which is no part of
// a zone's name.
func (s *Store) distributionKey(k *counter.Key, index int64) string {
	return s.counterKey("v"+strconv.FormatInt(index, 10), k)
}

// timely asks until the keys fit the clock of Redis.
func (s *Store) timely(ask func(now weir.Micros) *redislink.Answer) (answer *redislink.Answer) {
	for range 3 {
		here := weir.MicrosOf(s.around())
		if answer = ask(here + weir.Micros(s.ahead.Load())); !errors.Is(answer.Err(), errWhen) {
			break
		}
		s.ahead.Store(answer.Int() - int64(here))
	}
	return answer
}

// Observe implements counter.Store.
func (s *Store) Observe(ctx context.Context, samples ...counter.Sample) error {
	if err := counter.ValidateObserve(samples); err != nil {
		return err
	}
	added := make([]counter.Distribution, len(samples))
	for i := range samples {
		var err error
		if added[i], err = samples[i].Distribution(); err != nil {
			return err
		}
	}
	keyOf := func(i int) *counter.Key { return &samples[i].Key }
	return s.byGroup(len(samples), keyOf, func(places []int) *redislink.Answer {
		return s.timely(func(now weir.Micros) *redislink.Answer {
			r := &request{args: []string{s.now()}}
			for _, i := range places {
				s.observe(r, &samples[i].Key, &added[i], now)
			}
			return s.call(ctx, observeScript, r.keys, r.args)
		})
	}, func(int, *redislink.Answer) {})
}

// observe puts a sample into a request: the keys of three windows, and what to add.
func (s *Store) observe(r *request, k *counter.Key, d *counter.Distribution, now weir.Micros) {
	first := k.Window.Index(now, k.Zone) - 1
	for index := first; index < first+3; index++ {
		r.keys = append(r.keys, s.distributionKey(k, index))
	}
	r.args = append(r.args, windowOf(k.Window), zoneAt(now.Time(), k.Zone), itoa(first), millis(s.kept.DistributionAfter(k.Window)),
		itoa(int64(d.Sum)), itoa(int64(d.Min)), itoa(int64(d.Max)), strconv.Itoa(len(d.Buckets)))
	for _, b := range d.Buckets {
		r.args = append(r.args, strconv.Itoa(b.Number), itoa(b.Count))
	}
}

// Distributions implements counter.Store.
func (s *Store) Distributions(ctx context.Context, n int, keys ...counter.Key) ([][]counter.DistributionPoint, error) {
	if err := counter.ValidateDistributions(n, keys, s.kept); err != nil {
		return nil, err
	}
	all := make([][]counter.DistributionPoint, len(keys))
	err := s.byGroup(len(keys), func(i int) *counter.Key { return &keys[i] }, func(places []int) *redislink.Answer {
		return s.timely(func(now weir.Micros) *redislink.Answer {
			ask := &request{args: []string{s.now(), strconv.Itoa(n)}}
			for _, i := range places {
				k := &keys[i]
				first := k.Window.Index(now, k.Zone) - int64(n)
				for index := first; index < first+int64(n)+2; index++ {
					ask.keys = append(ask.keys, s.distributionKey(k, index))
				}
				ask.args = append(ask.args, windowOf(k.Window), zoneAt(now.Time(), k.Zone), itoa(first))
			}
			return s.call(ctx, distributionScript, ask.keys, ask.args)
		})
	}, func(i int, answer *redislink.Answer) {
		line := answer.List()
		index := line.Int()
		all[i] = make([]counter.DistributionPoint, n)
		for j := range all[i] {
			all[i][j] = counter.DistributionPoint{
				Start: keys[i].Window.Start(index-int64(n-1-j), keys[i].Zone), Distribution: distribution(line.List()),
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// distribution reads the fields of a hash, and what they have, by turns.
func distribution(fields *redislink.Answer) (d counter.Distribution) {
	for fields.Len() > 0 {
		switch name, value := fields.Text(), fields.Int(); name {
		case "sum":
			d.Sum = counter.Amount(value)
		case "min":
			d.Min = counter.Amount(value)
		case "max":
			d.Max = counter.Amount(value)
		default:
			d.Count += value
			d.Buckets = append(d.Buckets, counter.Bucket{Number: int(parse(name, fields)), Count: value})
		}
	}
	slices.SortFunc(d.Buckets, func(a, b counter.Bucket) int { return a.Number - b.Number })
	return d
}
