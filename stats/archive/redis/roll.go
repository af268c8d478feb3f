package redis

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// rollEvery is how often a slot that still changes is rolled up, in steps of the level
// below. If every instance dies and none starts before the finer slots expire, little is
// lost.
const rollEvery = 10

// grace is how long after its end a slot may still get parts in the ordinary way.
const grace = 5

// rolled remembers when each level was last rolled up here although it goes on.
type rolled struct {
	mu sync.Mutex
	at map[string]int64
}

// due reports whether it is time for the slots of a level that go on.
func (r *rolled) due(key string, now, every int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.at[key]; ok && now >= last && now < last+every {
		return false
	}
	r.at[key] = now
	return true
}

// RollUp writes the sums that have changed. Any number of instances may call it, at any
// time: each gets the same result. If one is killed, the marks remain, and another
// instance continues.
func (a *Store) RollUp(ctx context.Context, now time.Time) error {
	for kind := range archive.Kinds {
		levels := a.kept[kind]
		for level := 1; level < len(levels); level++ {
			if err := a.rollLevel(ctx, kind, level, now.Unix()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Store) rollLevel(ctx context.Context, kind archive.Kind, level int, now int64) error {
	ctx, cancel := context.WithTimeout(ctx, 10*a.timeout) // many answers, each in time
	defer cancel()
	client, err := a.client()
	if err != nil {
		return err
	}
	l, below := a.kept[kind][level], a.kept[kind][level-1]
	marks, err := a.marks(ctx, client, kind, level)
	if err != nil || len(marks) == 0 {
		return err
	}
	ongoing := a.rolled.due(a.marksKey(kind, l.Step), now, rollEvery*below.Step)
	for _, start := range slices.Sorted(maps.Keys(marks)) {
		ended := start+l.Step+grace <= now
		if !ended && !ongoing {
			continue
		}
		slot := a.slotKey(kind, l.Step, start)
		before, err := decodeSum(client.Do(ctx, client.B().Get().Key(slot).Build()))
		if err != nil {
			return explain(err)
		}
		f, err := a.sum(ctx, kind, level, start, before)
		if err != nil {
			return err
		}
		sum := ""
		if f != nil && f != before {
			sum = string(f.Append(nil))
		}
		mark := marks[start]
		if !ended {
			mark = ""
		}
		keys := []string{slot, a.marksKey(kind, l.Step)}
		args := []string{mark, seconds(start), sum, seconds(l.Keep + slack)}
		if err := rollScript.Exec(ctx, client, keys, args).Error(); err != nil {
			return explain(err)
		}
	}
	return nil
}
