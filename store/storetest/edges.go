package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// start is where the clock of these tests begins, in the middle of a window.
var start = weir.MicrosOf(time.Date(2026, 1, 1, 12, 0, 7, 0, time.UTC))

// testExpiry finds a key as good as new when its decision said it would be, and
// not a microsecond sooner.
func testExpiry(t *testing.T, open Open) {
	for _, limit := range limits(t, "5") {
		t.Run(limit.Limit().String(), func(t *testing.T) {
			subject := open(t)
			subject.Set(start)
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
	subject := open(t)
	subject.Set(start)
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := subject.Store.Take(ctx, nil, op); !errors.Is(err, context.Canceled) {
		t.Errorf("Take with a cancelled context: %v, want context.Canceled", err)
	}
	if _, err := subject.Store.Peek(ctx, nil, op); !errors.Is(err, context.Canceled) {
		t.Errorf("Peek with a cancelled context: %v, want context.Canceled", err)
	}
	if d := peek(t, subject.Store, op); d.Remaining != 5 {
		t.Errorf("%d remain, want 5: a cancelled request was charged", d.Remaining)
	}
	taken := op
	taken.Receipt = take(t, subject.Store, op).Receipt
	if err := subject.Store.Refund(ctx, taken); !errors.Is(err, context.Canceled) {
		t.Errorf("Refund with a cancelled context: %v, want context.Canceled", err)
	}
	if err := subject.Store.Reset(ctx, op); !errors.Is(err, context.Canceled) {
		t.Errorf("Reset with a cancelled context: %v, want context.Canceled", err)
	}
	if d := peek(t, subject.Store, op); d.Remaining != 4 {
		t.Errorf("%d remain, want 4", d.Remaining)
	}
}

// testKeys: any bytes are a key, and no two keys are one.
func testKeys(t *testing.T, open Open) {
	subject := open(t)
	subject.Set(start)
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
	subject := open(t)
	subject.Set(start)
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
		_, err := subject.Store.Take(t.Context(), nil, good, op)
		var invalid *weir.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != strings.TrimSpace(field) {
			t.Errorf("Take(%+v): %v, want an InvalidError of %q", op, err, field)
		}
		if err := subject.Store.Refund(t.Context(), good, op); !errors.As(err, &invalid) || invalid.Field != strings.TrimSpace(field) {
			t.Errorf("Refund(%+v): %v, want an InvalidError of %q", op, err, field)
		}
		if field == "cost" {
			continue // a peek may cost nothing
		}
		if _, err := subject.Store.Peek(t.Context(), nil, good, op); !errors.As(err, &invalid) || invalid.Field != strings.TrimSpace(field) {
			t.Errorf("Peek(%+v): %v, want an InvalidError of %q", op, err, field)
		}
		if err := subject.Store.Reset(t.Context(), good, op); !errors.As(err, &invalid) || invalid.Field != strings.TrimSpace(field) {
			t.Errorf("Reset(%+v): %v, want an InvalidError of %q", op, err, field)
		}
	}
	many := make([]weir.Op, weir.MaxOps+1)
	for i := range many {
		many[i] = good
	}
	if _, err := subject.Store.Take(t.Context(), nil, many...); err == nil {
		t.Errorf("Take of %d ops was not refused", len(many))
	}
	if _, err := subject.Store.Peek(t.Context(), nil, many[1:]...); err != nil {
		t.Errorf("Peek of %d ops: %v", len(many)-1, err)
	}
	if d := peek(t, subject.Store, good); d.Remaining != 5 {
		t.Errorf("%d remain, want 5: a bad request was charged", d.Remaining)
	}
	if d, err := subject.Store.Take(t.Context(), nil); err != nil || len(d) != 0 {
		t.Errorf("Take of nothing: %v, %v", d, err)
	}
}

// testAppends: decisions come after what is in dst already.
func testAppends(t *testing.T, open Open) {
	subject := open(t)
	subject.Set(start)
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
	mark := weir.Decision{Limit: 99}
	for _, ask := range []func(context.Context, []weir.Decision, ...weir.Op) ([]weir.Decision, error){subject.Store.Take, subject.Store.Peek} {
		d, err := ask(t.Context(), []weir.Decision{mark}, op, op)
		if err != nil {
			t.Fatal(err)
		}
		if len(d) != 3 || d[0] != mark || d[1].Limit != 5 || d[2].Limit != 5 {
			t.Errorf("got %+v", d)
		}
	}
}

func take(t *testing.T, store weir.Store, op weir.Op) weir.Decision {
	t.Helper()
	return ask(t, store.Take, op)
}

func peek(t *testing.T, store weir.Store, op weir.Op) weir.Decision {
	t.Helper()
	return ask(t, store.Peek, op)
}

func ask(t *testing.T, do func(context.Context, []weir.Decision, ...weir.Op) ([]weir.Decision, error), op weir.Op) weir.Decision {
	t.Helper()
	d, err := do(t.Context(), nil, op)
	if err != nil {
		t.Fatal(err)
	}
	return d[0]
}
