package redis

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit/countertest"
)

// With a hash tag for a prefix there is one node, and the whole suite must pass.
func clusterSuite(t *testing.T, client rueidis.Client) {
	opened := 0
	countertest.Run(t, func(t *testing.T, o countertest.Settings) countertest.Subject {
		opened++
		var clock fake
		store := storeOn(t, client, Options{Prefix: fmt.Sprintf("{suite%d}:", opened), MaxMembers: o.MaxMembers, Retention: o.Retention, Clock: clock.Now})
		return countertest.Subject{Store: store, Set: clock.Set}
	})
}

// Without one, counters of several groups are asked for side by side, and answers come
// in their order. Each group does all or nothing.
func clusterSplit(t *testing.T, client rueidis.Client) {
	s, ctx := storeOn(t, client, Options{}), t.Context()
	var deltas []counter.Delta
	var keys []counter.Key
	for i := range counter.MaxBatch {
		key := counter.Key{Name: fmt.Sprint("name", i), Window: counter.Year}
		if i%3 == 0 {
			key.Group = fmt.Sprint("group", i%7)
		}
		keys = append(keys, key)
		deltas = append(deltas, counter.Delta{Key: key, By: counter.Whole(int64(i + 1))})
	}
	for round := range int64(2) {
		after, err := s.Add(ctx, deltas...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Get(ctx, keys...)
		if err != nil {
			t.Fatal(err)
		}
		series, err := s.History(ctx, 2, keys...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			if want := counter.Whole((round + 1) * int64(i+1)); after[i] != want || got[i] != want || series[i][1].Amount != want {
				t.Errorf("%s has %v, %v and %v, want %v", keys[i].Name, after[i], got[i], series[i], want)
			}
		}
	}
	group := []counter.Key{{Group: "g", Name: "x"}, {Group: "g", Name: "y"}}
	_, err := s.Add(ctx, counter.Delta{Key: group[0], By: counter.One}, counter.Delta{Key: group[1], By: counter.MaxAmount}, counter.Delta{Key: group[1], By: counter.MaxAmount})
	if got, getErr := s.Get(ctx, group...); !errors.Is(err, counter.ErrRange) || getErr != nil || got[0] != 0 || got[1] != 0 {
		t.Errorf("Add = %v, and then there is %v, %v", err, got, getErr)
	}
	other := counter.Key{Group: "h", Name: "x"}
	_, err = s.Add(ctx, counter.Delta{Key: group[1], By: counter.MaxAmount}, counter.Delta{Key: group[1], By: counter.MaxAmount}, counter.Delta{Key: other, By: counter.One})
	got, getErr := s.Get(ctx, group[1], other)
	if !errors.Is(err, counter.ErrRange) || !strings.Contains(err.Error(), "succeeded for others") || getErr != nil || got[0] != 0 || got[1] != counter.One {
		t.Errorf("Add = %v, and then there is %v, %v", err, got, getErr)
	}
	for i := range 20 {
		name := fmt.Sprint("}{", i)
		times := []counter.Key{{Name: name, Window: counter.Minute}, {Name: "b" + name, Window: counter.Minute}}
		if err := s.Observe(ctx, counter.Sample{Key: times[0], Values: []counter.Amount{1, 2}}, counter.Sample{Key: times[1], Values: []counter.Amount{3}}); err != nil {
			t.Error(err)
		}
		if got, err := s.Distributions(ctx, 3, times...); err != nil || got[0][1].Count+got[0][2].Count != 2 || got[1][1].Sum+got[1][2].Sum != 3 {
			t.Errorf("Distributions = %+v, %v", got, err)
		}
		if after, err := s.Add(ctx, counter.Delta{Key: counter.Key{Name: name, Distinct: true}, Members: []string{"a", "b"}}, counter.Delta{Key: counter.Key{Name: "sum" + name}, By: counter.One}); err != nil || after[0] != counter.Whole(2) {
			t.Errorf("Add = %v, %v", after, err)
		}
		if _, err := s.Score(ctx, counter.Board{Name: name, Window: counter.Hour}, counter.Mark{Member: "m", By: 1}); err != nil {
			t.Error(err)
		}
		if _, err := s.Score(ctx, counter.Board{Name: name, Sliding: time.Hour}, counter.Mark{Member: "m", By: 1}); err != nil {
			t.Error(err)
		}
		if heats, err := s.Hit(ctx, counter.HotList{Name: name, Window: time.Hour, Threshold: 1}, "i"); err != nil || !heats[0].Turned {
			t.Errorf("Hit = %+v, %v", heats, err)
		}
		if _, err := s.NextID(ctx, name); err != nil {
			t.Error(err)
		}
	}
}
