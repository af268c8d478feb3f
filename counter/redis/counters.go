package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/redislink"
)

// sequenceKept is how long a sequence is kept after the time has passed it.
const sequenceKept = 24 * time.Hour

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func millis(d time.Duration) string { return itoa((d + time.Millisecond - 1).Milliseconds()) }

// request is what one script call does for counters.
type request struct {
	keys []string
	args []string
}

func (s *Store) put(r *request, d *counter.Delta, around time.Time) {
	k := &d.Key
	r.keys = append(r.keys, s.counterKey("c", k))
	r.args = append(r.args, windowOf(k.Window), itoa(int64(s.kept.Windows(k.Window))), millis(s.kept.After(k.Window)), zoneAt(around, k.Zone))
	if !k.Distinct {
		r.args = append(r.args, itoa(int64(d.By)), "")
		return
	}
	r.keys[len(r.keys)-1] = s.counterKey("d", k)
	r.keys = append(r.keys, s.counterKey("d0", k), s.counterKey("d1", k))
	r.args = append(r.args, "0", rand.Text(), millis(s.sketchKept(k.Window)), itoa(int64(len(d.Members))))
	r.args = append(r.args, d.Members...)
}

// sketchKept is how long the members of a window may still be added to: until the window
// ends, or a little later if the clock goes back.
func (s *Store) sketchKept(w counter.Window) time.Duration {
	if w == counter.Ever {
		return s.kept.Ever
	}
	return min(2*w.Width()+time.Minute, s.kept.After(w))
}

// each asks about counters, unless what was asked is invalid: with one script, or with one
// for each group. It tells what each counter has: the number of the current window, and the
// amounts.
func (s *Store) each(ctx context.Context, invalid error, verb string, n int, deltas []counter.Delta, tell func(i int, index int64, amounts []counter.Amount)) error {
	if invalid != nil {
		return invalid
	}
	keyOf := func(i int) *counter.Key { return &deltas[i].Key }
	return s.byGroup(len(deltas), keyOf, func(places []int) *redislink.Answer {
		request, around := &request{args: []string{s.now(), verb, itoa(int64(n))}}, s.around()
		for _, i := range places {
			s.put(request, &deltas[i], around)
		}
		return s.call(ctx, counterScript, request.keys, request.args)
	}, func(i int, answer *redislink.Answer) {
		line := answer.List()
		line.Must(line.Len() == n+1)
		index := line.Int()
		amounts := make([]counter.Amount, n)
		for x := range amounts {
			amounts[x] = amount(line)
		}
		tell(i, index, amounts)
	})
}

// byGroup asks about n things with one script, or with one for each group of keys if they
// may be on several nodes. For each, tell reads a part of the answer.
func (s *Store) byGroup(n int, key func(int) *counter.Key, ask func(places []int) *redislink.Answer, tell func(int, *redislink.Answer)) error {
	var groups [][]int
	found, split := map[string]int{}, s.split()
	for i := range n {
		name := ""
		if split {
			name = tag(key(i))
		}
		group, known := found[name]
		if !known {
			group = len(groups)
			found[name], groups = group, append(groups, nil)
		}
		groups[group] = append(groups[group], i)
	}
	answers := make([]*redislink.Answer, len(groups))
	failed := make([]error, len(groups))
	together(len(groups), func(i int) {
		answers[i] = ask(groups[i])
		answers[i].Must(answers[i].Len() == len(groups[i]))
		failed[i] = answers[i].Err()
	})
	if err := cmp.Or(failed...); err != nil {
		if slices.Contains(failed, nil) {
			err = fmt.Errorf("%w (this is one group of counters; the call succeeded for others)", err)
		}
		return err
	}
	for i, places := range groups {
		for _, place := range places {
			tell(place, answers[i])
		}
		failed[i] = answers[i].Err()
	}
	return cmp.Or(failed...)
}

// together does n things, a few at a time.
func together(n int, do func(int)) {
	if n == 1 {
		do(0)
		return
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			do(i)
			<-slots
		})
	}
	all.Wait()
}

// amounts is each for the current window.
func (s *Store) amounts(ctx context.Context, invalid error, verb string, deltas []counter.Delta) ([]counter.Amount, error) {
	all := make([]counter.Amount, len(deltas))
	err := s.each(ctx, invalid, verb, 1, deltas, func(i int, _ int64, amounts []counter.Amount) { all[i] = amounts[0] })
	if err != nil {
		return nil, err
	}
	return all, nil
}

// unchanged are deltas by which nothing is changed.
func unchanged(keys []counter.Key) []counter.Delta {
	deltas := make([]counter.Delta, len(keys))
	for i := range keys {
		deltas[i].Key = keys[i]
	}
	return deltas
}

// Add implements counter.Store.
func (s *Store) Add(ctx context.Context, deltas ...counter.Delta) ([]counter.Amount, error) {
	return s.amounts(ctx, counter.ValidateAdd(deltas), "add", deltas)
}

// Get implements counter.Store.
func (s *Store) Get(ctx context.Context, keys ...counter.Key) ([]counter.Amount, error) {
	return s.amounts(ctx, counter.ValidateKeys(keys), "get", unchanged(keys))
}

// Reset implements counter.Store.
func (s *Store) Reset(ctx context.Context, keys ...counter.Key) ([]counter.Amount, error) {
	return s.amounts(ctx, counter.ValidateKeys(keys), "set", unchanged(keys))
}

// Set implements counter.Store.
func (s *Store) Set(ctx context.Context, settings ...counter.Setting) ([]counter.Amount, error) {
	deltas := make([]counter.Delta, len(settings))
	for i := range settings {
		deltas[i] = counter.Delta{Key: settings[i].Key, By: settings[i].To}
	}
	return s.amounts(ctx, counter.ValidateSet(settings), "set", deltas)
}

// History implements counter.Store.
func (s *Store) History(ctx context.Context, n int, keys ...counter.Key) ([][]counter.Point, error) {
	all := make([][]counter.Point, len(keys))
	err := s.each(ctx, counter.ValidateHistory(n, keys, s.kept), "get", n, unchanged(keys), func(i int, index int64, amounts []counter.Amount) {
		all[i] = make([]counter.Point, n)
		for j, amount := range amounts {
			all[i][j] = counter.Point{Start: keys[i].Window.Start(index-int64(n-1-j), keys[i].Zone), Amount: amount}
		}
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// NextID implements counter.Store.
func (s *Store) NextID(ctx context.Context, sequence string) (int64, error) {
	if err := counter.ValidateSequence(sequence); err != nil {
		return 0, err
	}
	a := s.call(ctx, sequenceScript, []string{s.sequenceKey(sequence)}, []string{s.now(), millis(sequenceKept)})
	return redislink.Result(a.Int(), a)
}
