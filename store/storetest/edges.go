package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// start is where the clock of these tests begins, in the middle of a window.
var start = weir.MicrosOf(time.Date(2026, 1, 1, 12, 0, 7, 0, time.UTC))

// opened is a subject at the start.
func opened(t *testing.T, open Open) Subject {
	t.Helper()
	subject := open(t)
	subject.Set(start)
	return subject
}

// testExpiry finds a key fully reset when its decision said it would be, and
// not a microsecond sooner.
func testExpiry(t *testing.T, open Open) {
	for _, limit := range limits(t, "5") {
		t.Run(limit.Limit().String(), func(t *testing.T) {
			subject := opened(t, open)
			op := weir.Op{Key: "k", Limit: limit, Cost: limit.Capacity()}
			d := take(t, subject.Store, op)
			if !d.Allowed || d.ResetAfter <= 0 {
				t.Fatalf("the first request was answered %+v", d)
			}
			op.Cost = 0
			for _, c := range []struct {
				at  time.Duration
				new bool
			}{{d.ResetAfter - time.Microsecond, false}, {d.ResetAfter, true}, {d.ResetAfter + 24*time.Hour, true}} {
				subject.Set(start + weir.Micros(c.at.Microseconds()))
				p := peek(t, subject.Store, op)
				if got := p.Remaining == limit.Capacity() && p.ResetAfter == 0; got != c.new {
					t.Errorf("%v after a reset that was due in %v: %+v", c.at, d.ResetAfter, p)
				}
			}
		})
	}
}

// testCancelled: a context that has ended is an error, and costs nothing.
func testCancelled(t *testing.T, open Open) {
	subject := opened(t, open)
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range calls(ctx, subject.Store) {
		taken := op
		taken.Receipt = take(t, subject.Store, op).Receipt
		if err := call(taken); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a cancelled context: %v, want context.Canceled", name, err)
		}
		if d := peek(t, subject.Store, op); d.Remaining != 4 {
			t.Errorf("%d remain, want 4: a cancelled %s was done", d.Remaining, name)
		}
		testkit.OK(t, subject.Store.Reset(t.Context(), op))
	}
}

// calls are all that a store can be asked.
func calls(ctx context.Context, store weir.Store) map[string]func(...weir.Op) error {
	all := map[string]func(...weir.Op) error{
		"Take":   func(ops ...weir.Op) error { return testkit.Err(store.Take(ctx, nil, ops...)) },
		"Peek":   func(ops ...weir.Op) error { return testkit.Err(store.Peek(ctx, nil, ops...)) },
		"Refund": func(ops ...weir.Op) error { return store.Refund(ctx, ops...) },
		"Reset":  func(ops ...weir.Op) error { return store.Reset(ctx, ops...) },
	}
	if store, ok := store.(weir.PartialStore); ok {
		all["TakePartial"] = func(ops ...weir.Op) error { _, _, err := store.TakePartial(ctx, nil, ops...); return err }
		all["PeekPartial"] = func(ops ...weir.Op) error { _, _, err := store.PeekPartial(ctx, nil, ops...); return err }
	}
	return all
}

// testKeys: any bytes are a key, and no two keys are one.
func testKeys(t *testing.T, open Open) {
	subject := opened(t, open)
	limit := weir.MustCompile("fixed_window 1/1m")
	keys := []string{
		"a", "A", "a ", " a", "aa", "a\x00", "\x00a", "\x00", "\x00\x00", "a\n", "a\r\n", "*", "?", "[a]",
		"{a}", "{a}b", "{}", "}{", "a:b", "a::b", ":a:b", "a/b", "..", "%00", "é", "e\u0301", "\xff", "\xff\xff",
		"\u202ea", strings.Repeat("x", weir.MaxKeyLen), strings.Repeat("x", weir.MaxKeyLen-1) + "y", strings.Repeat("x", weir.MaxKeyLen-1),
		"nil", "0", "-1", "fixed_window", `a"b`, `a\b`, "EVAL", "DEL a",
	}
	for round, want := range []bool{true, false} {
		for _, key := range keys {
			if d := take(t, subject.Store, weir.Op{Key: key, Limit: limit, Cost: 1}); d.Allowed != want {
				t.Errorf("round %d: take %.20q: allowed is %v, want %v", round+1, key, d.Allowed, want)
			}
		}
	}
}

// testBadOps: one bad op spoils the request, with an error that says why.
func testBadOps(t *testing.T, open Open) {
	subject := opened(t, open)
	good := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
	with := func(change func(*weir.Op)) weir.Op {
		op := good
		change(&op)
		return op
	}
	for field, op := range map[string]weir.Op{
		"key":       with(func(op *weir.Op) { op.Key = "" }),
		"key ":      with(func(op *weir.Op) { op.Key = strings.Repeat("x", weir.MaxKeyLen+1) }),
		"cost":      with(func(op *weir.Op) { op.Cost = 0 }),
		"cost ":     with(func(op *weir.Op) { op.Cost = -1 }),
		"limit":     with(func(op *weir.Op) { op.Limit = nil }),
		"max_delay": with(func(op *weir.Op) { op.MaxDelay = -1 }),
		"receipt":   with(func(op *weir.Op) { op.Receipt = -1 }),
	} {
		for name, call := range calls(t.Context(), subject.Store) {
			if field == "cost" && (strings.HasPrefix(name, "Peek") || name == "Reset") {
				continue // which may cost nothing
			}
			err := call(good, op)
			if invalid, ok := errors.AsType[*weir.InvalidError](err); !ok || invalid.Field != strings.TrimSpace(field) {
				t.Errorf("%s(%+v): %v, want an InvalidError of %q", name, op, err, field)
			}
		}
	}
	many := slices.Repeat([]weir.Op{good}, weir.MaxOps+1)
	if _, err := subject.Store.Take(t.Context(), nil, many...); err == nil {
		t.Errorf("Take of %d ops was not denied", len(many))
	}
	if _, err := subject.Store.Peek(t.Context(), nil, many[1:]...); err != nil {
		t.Errorf("Peek of %d ops: %v", len(many)-1, err)
	}
	if d := peek(t, subject.Store, good); d.Remaining != 5 {
		t.Errorf("%d remain, want 5: a bad request was charged", d.Remaining)
	}
	for name, call := range calls(t.Context(), subject.Store) {
		if err := call(); err != nil {
			t.Errorf("%s of nothing: %v", name, err)
		}
	}
}

// testAppends: decisions come after what is in dst already.
func testAppends(t *testing.T, open Open) {
	subject := opened(t, open)
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
	mark := weir.Decision{Limit: 99}
	for _, ask := range []verb{subject.Store.Take, subject.Store.Peek} {
		d := testkit.Must(ask(t.Context(), []weir.Decision{mark}, op, op))(t)
		if len(d) != 3 || d[0] != mark || d[1].Limit != 5 || d[2].Limit != 5 {
			t.Errorf("got %+v", d)
		}
	}
}

// verb is Take or Peek.
type verb func(context.Context, []weir.Decision, ...weir.Op) ([]weir.Decision, error)

func take(t *testing.T, store weir.Store, op weir.Op) weir.Decision {
	t.Helper()
	return testkit.Must(store.Take(t.Context(), nil, op))(t)[0]
}

func peek(t *testing.T, store weir.Store, op weir.Op) weir.Decision {
	t.Helper()
	return testkit.Must(store.Peek(t.Context(), nil, op))(t)[0]
}
