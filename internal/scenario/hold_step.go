package scenario

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/duration"
)

// Holds reports whether the script has holds, which not every store has.
func (s *Script) Holds() bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool { return step.Hold != "" })
}

// states are what can be expected of a hold, in the order of weir.HoldState.
var states = []string{"unknown", "open", "settled", "expired"}

// hold reads the name of a hold.
func (p *parser) hold(step *Step) error {
	if t := p.peek(); t == "" || t == "->" {
		return errors.New("the hold needs a name; write it after the verb")
	}
	step.Hold = p.next()
	return nil
}

// lasting reads [for D].
func (p *parser) lasting(step *Step) (err error) {
	if p.accept("for") {
		step.TTL, err = duration.Parse(p.next())
	}
	return err
}

// settle reads HOLD [USED] [for D] [-> STATE].
func (p *parser) settle(step *Step) error {
	if err := p.hold(step); err != nil {
		return err
	}
	var err error
	switch step.Verb {
	case "settle":
		if step.Used, err = strconv.ParseInt(p.next(), 10, 64); err != nil || step.Used < 0 {
			return errors.New("how many units were used? write a whole number after the hold")
		}
	case "extend":
		if err := p.lasting(step); err != nil {
			return err
		}
	}
	if p.accept("->") {
		a := answer{op: -1, field: p.next()}
		if a.number = int64(slices.Index(states, a.field)); a.number < 0 {
			return fmt.Errorf("%q is not the state of a hold; expect any of %v", a.field, states)
		}
		step.answers = []answer{a}
	}
	return p.end()
}

// id is of the hold with a name.
func (s *Step) id() weir.HoldID {
	sum := sha256.Sum256([]byte(s.Hold))
	return weir.HoldID(sum[:16])
}

var errNoHolds = errors.New("the store has no holds")

// reserve is what asks the store for a hold.
func (r *runner) reserve(step *Step) func(context.Context, []weir.Decision, ...weir.Op) ([]weir.Decision, error) {
	return func(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
		store, ok := r.subject.Store.(weir.HoldStore)
		if !ok {
			return dst, errNoHolds
		}
		return store.Reserve(ctx, dst, weir.Reservation{ID: step.id(), TTL: step.TTL}, ops...)
	}
}

// settle ends a hold, or extends it.
func (r *runner) settle(step *Step) error {
	store, ok := r.subject.Store.(weir.HoldStore)
	if !ok {
		return errNoHolds
	}
	s := weir.Settlement{ID: step.id(), TTL: step.TTL}
	if step.Verb != "extend" {
		s.Used = func(string, int64) int64 { return step.Used }
	}
	done, err := store.Settle(r.ctx, s)
	if err != nil {
		return err
	}
	for _, a := range step.answers {
		if int64(done.State) != a.number {
			return fmt.Errorf("the hold is %s, want %s", done.State, a.field)
		}
	}
	return nil
}
