package engine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
)

// What is allowed only because no rules are loaded yet is marked, whatever it costs; what no rule
// limits is not.
func TestBeforeRules(t *testing.T) {
	e := testkit.Must(engine.New(engine.Options{}))(t)
	e.InstallOverrides(nil)
	gate := testkit.Must(engine.NewGate(e, 0, nil))(t)
	req := &rule.Request{User: "alice", Costs: map[string]int64{"tokens": 5}}
	var v engine.Verdict
	for name, ask := range map[string]func() error{
		"check":   func() error { return e.Check(t.Context(), req, &v) },
		"peek":    func() error { return e.Peek(t.Context(), req, &v) },
		"charge":  func() error { return e.Charge(t.Context(), req, &v) },
		"reserve": func() error { return e.Reserve(t.Context(), req, time.Minute, &v) },
		"gate": func() error {
			_, err := gate.Reserve(t.Context(), req, time.Minute, &v, new(engine.Denial))
			return err
		},
	} {
		if err := ask(); err != nil || !v.Allowed || !errors.Is(v.Degraded, engine.ErrNoRules) || v.Outcome() != engine.OutcomeDegradedAllowed || v.Hold != (weir.HoldID{}) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
	if s := testkit.Must(e.Settle(t.Context(), weir.NewHoldID(), engine.ByUnit{"tokens": 5}))(t); s.State != weir.HoldUnknown {
		t.Errorf("%+v", s)
	}
	draft := table(t, "rules: []")
	if err := e.PeekWith(t.Context(), draft, &rule.Request{}, &v); err != nil || v.Degraded != nil {
		t.Errorf("a draft: %v, %v", v.Degraded, err)
	}
	e.Install(draft, 0)
	e.InstallOverrides(nil)
	if err := e.Check(t.Context(), &rule.Request{}, &v); err != nil || v.Degraded != nil || v.Outcome() != engine.OutcomeNoRule {
		t.Errorf("with rules: %v, %v", v.Degraded, err)
	}
}
