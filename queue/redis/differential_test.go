package redis

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/queue"
	"github.com/weirhq/weir/queue/memory"
)

// twins are the two stores that have to agree, and their clock.
type twins struct {
	t      *rapid.T
	redis  queue.Store
	memory queue.Store
	clock  *fake

	tokens  [][2]string // of leases, in Redis and in memory
	numbers []int64
}

// settingsFor are small, so that bounds are reached.
func settingsFor(r *rapid.T) queue.Settings {
	ms := func(name string, low, high int) time.Duration {
		return time.Duration(rapid.IntRange(low, high).Draw(r, name)) * time.Millisecond
	}
	s := queue.Settings{
		N:          rapid.Int64Range(1, 30).Draw(r, "N"),
		Period:     time.Duration(rapid.SampledFrom([]int64{7, 1000, 50_000, 1_000_000, 7_000_000}).Draw(r, "Period")) * time.Microsecond,
		Capacity:   rapid.IntRange(1, 12).Draw(r, "Capacity"),
		Visibility: ms("Visibility", 1, 3000),
		MaxTries:   rapid.IntRange(1, 4).Draw(r, "MaxTries"),
		Backoff:    ms("Backoff", 1, 1000),
		MaxDead:    rapid.IntRange(1, 4).Draw(r, "MaxDead"),
		Remember:   ms("Remember", 0, 1) * 2_000,
	}
	s.MaxBackoff = s.Backoff + ms("MaxBackoff", 0, 3000)
	return s
}

// Whatever is done to them and whatever the clock does, a queue in Redis and one in memory
// give the same answers, to the microsecond.
func TestSameAsMemory(t *testing.T) {
	client := clientOf(t, testredis.Start(t).Addr)
	rapid.Check(t, func(r *rapid.T) {
		flush(t, client)
		clock := &fake{}
		clock.Set(1_767_268_807_000_000)
		declared := map[string]queue.Settings{"q": settingsFor(r)}
		inMemory, err := memory.New(declared, memory.Options{Clock: clock.Now})
		if err != nil {
			r.Fatal(err)
		}
		w := &twins{t: r, redis: storeOn(t, client, declared, Options{Clock: clock.Now}), memory: inMemory, clock: clock}
		for range rapid.IntRange(1, 80).Draw(r, "steps") {
			w.step(t)
		}
		// The keys agree with what the answers say.
		w.same("Stats", func(s queue.Store) (any, error) { return s.Stats(t.Context(), "q") })
	})
}

func (w *twins) step(t *testing.T) {
	ctx := t.Context()
	id := rapid.SampledFrom([]string{"", "", "a", "b", "c d", "\x00"})
	switch rapid.SampledFrom([]string{"pass", "pass", "push", "push", "push", "lease", "lease", "lease", "ack", "nack", "extend", "return", "letters", "requeue", "delete", "stats"}).Draw(w.t, "what") {
	case "pass":
		by := rapid.OneOf(rapid.Int64Range(0, 5), rapid.Int64Range(0, 200_000), rapid.Int64Range(0, 5_000_000), rapid.Int64Range(-20_000_000, 0)).Draw(w.t, "by")
		w.clock.Set(w.clock.Now() + weir.Micros(by))
	case "push":
		work := queue.Work{ID: id.Draw(w.t, "id"), Payload: []byte(rapid.SampledFrom([]string{"", "x", "y\n\x00 z"}).Draw(w.t, "payload"))}
		w.same("Push", func(s queue.Store) (any, error) {
			p, err := s.Push(ctx, "q", work)
			if s == w.memory && p.Number != 0 {
				w.numbers = append(w.numbers, p.Number)
			}
			return p, err
		})
	case "lease":
		w.lease(t, queue.Ask{
			Max:   rapid.IntRange(0, 5).Draw(w.t, "max"),
			Ahead: time.Duration(rapid.SampledFrom([]int64{0, 1, 100_000, 10_000_000}).Draw(w.t, "ahead")) * time.Microsecond,
		})
	case "ack":
		w.with("Ack", func(s queue.Store, token string) (any, error) { return nil, s.Ack(ctx, "q", token) })
	case "nack":
		f := queue.Failure{Reason: rapid.SampledFrom([]string{"", "no", " 1 2 3\n"}).Draw(w.t, "reason"), Bury: rapid.IntRange(0, 3).Draw(w.t, "bury") == 0}
		w.with("Nack", func(s queue.Store, token string) (any, error) { return s.Nack(ctx, "q", token, f) })
	case "extend":
		w.with("Extend", func(s queue.Store, token string) (any, error) { return s.Extend(ctx, "q", token) })
	case "return":
		w.with("Return", func(s queue.Store, token string) (any, error) { return nil, s.Return(ctx, "q", token) })
	case "letters":
		after, limit := int64(0), rapid.IntRange(1, 5).Draw(w.t, "limit")
		if len(w.numbers) > 0 && rapid.Bool().Draw(w.t, "later") {
			after = rapid.SampledFrom(w.numbers).Draw(w.t, "after")
		}
		w.same("DeadLetters", func(s queue.Store) (any, error) { return s.DeadLetters(ctx, "q", after, limit) })
	case "requeue", "delete":
		if len(w.numbers) == 0 {
			return
		}
		numbers := rapid.SliceOfN(rapid.SampledFrom(w.numbers), 0, 5).Draw(w.t, "numbers")
		if rapid.Bool().Draw(w.t, "again") {
			w.same("Requeue", func(s queue.Store) (any, error) { return s.Requeue(ctx, "q", numbers...) })
		} else {
			w.same("Delete", func(s queue.Store) (any, error) { return s.Delete(ctx, "q", numbers...) })
		}
	case "stats":
		w.same("Stats", func(s queue.Store) (any, error) { return s.Stats(ctx, "q") })
	}
}

// lease also remembers the tokens, which are all that may differ.
func (w *twins) lease(t *testing.T, ask queue.Ask) {
	var tokens [2][]string
	w.same("Lease", func(s queue.Store) (any, error) {
		b, err := s.Lease(t.Context(), "q", ask)
		for i := range b.Leases {
			l := &b.Leases[i]
			at := 0
			if s == w.memory {
				at = 1
				w.numbers = append(w.numbers, l.Number)
			}
			tokens[at] = append(tokens[at], l.Token)
			l.Token = ""
		}
		return b, err
	})
	for i := range tokens[0] {
		w.tokens = append(w.tokens, [2]string{tokens[0][i], tokens[1][i]})
	}
}

// with does something with any lease that there ever was, more often a late one.
func (w *twins) with(what string, f func(queue.Store, string) (any, error)) {
	if len(w.tokens) == 0 {
		return
	}
	back := rapid.OneOf(rapid.IntRange(0, min(3, len(w.tokens)-1)), rapid.IntRange(0, len(w.tokens)-1)).Draw(w.t, "lease")
	pair := w.tokens[len(w.tokens)-1-back]
	w.same(what, func(s queue.Store) (any, error) {
		if s == w.redis {
			return f(s, pair[0])
		}
		return f(s, pair[1])
	})
}

// same compares answers and errors.
func (w *twins) same(what string, f func(queue.Store) (any, error)) {
	w.t.Helper()
	want, wantErr := f(w.memory)
	got, gotErr := f(w.redis)
	if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || gotErr != nil && !errors.Is(gotErr, queue.ErrFull) && !errors.Is(gotErr, queue.ErrLost) {
		w.t.Fatalf("%s: Redis says %v, memory %v", what, gotErr, wantErr)
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) || reflect.TypeOf(got) != reflect.TypeOf(want) {
		w.t.Fatalf("%s: Redis says\n%+v\nmemory\n%+v", what, got, want)
	}
}
