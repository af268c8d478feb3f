package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// slow is a store that is told the time and takes some for each call, and in which every name of a hold is in use.
type slow struct {
	*memory.Store
	now, read time.Duration
}

func (s *slow) Quick(weir.Store) any   { return s }
func (s *slow) Elapsed() time.Duration { return s.now }

func (s *slow) TakePartialAt(ctx context.Context, read time.Duration, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) {
	s.read = read
	return s.TakePartial(ctx, dst, ops...)
}

func (s *slow) TakePartial(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) {
	dst, err := s.Take(ctx, dst, ops...)
	return dst, nil, err
}

func (s *slow) PeekPartial(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, []error, error) {
	dst, err := s.Peek(ctx, dst, ops...)
	return dst, nil, err
}

func (s *slow) ReservePartial(_ context.Context, dst []weir.Decision, _ weir.Reservation, _ ...weir.Op) ([]weir.Decision, []error, error) {
	s.now += 5 * time.Millisecond
	return dst, nil, weir.ErrHoldExists
}

func (s *slow) PartOf(weir.Op) uint16 { return 0 }

// A request that could not have a hold is checked without one, at the time of that.
func TestReadingAfterHolds(t *testing.T) {
	s := &slow{Store: memory.New(memory.Options{})}
	e, err := engine.New(engine.Options{Store: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	var v engine.Verdict
	d := engine.Demand{
		Rule: &rule.Entry{Rule: &rule.Rule{ID: "r"}}, Key: "k", Limits: []*weir.Compiled{weir.MustCompile("fixed_window 1000/1m")}, Cost: 1,
		Hold: &engine.NamedHold{Name: weir.HoldID{1}},
	}
	if err := e.Demand(t.Context(), []engine.Demand{d}, &v); err != nil || !v.Allowed || !v.Unheld {
		t.Fatal(err, v.Allowed, v.Unheld)
	}
	if s.now == 0 || s.read != s.now {
		t.Errorf("after %v, the store was told %v", s.now, s.read)
	}
}
