package engine_test

import (
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// shedding is an observer that knows what is shed.
type shedding struct {
	state  func() engine.Protection
	denied int
}

func (s *shedding) ObserveProtection(state func() engine.Protection) { s.state = state }
func (s *shedding) Observe(_ *rule.Request, v *engine.Verdict, _ time.Duration) {
	if v.Outcome() == engine.OutcomeDenied && v.Reason == engine.Overloaded {
		s.denied++
	}
}

// This process uses more than nothing, so its gate sheds. The verdict says why, and has no results
// of limits that were never asked; and observers are told.
func TestGateSheds(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says what a process uses")
	}
	seen := &shedding{}
	b := newBench(t, "rules: [{id: all, key: user, limit: 100000000/1h, concurrency: 1000000, warn: [50%], penalty: 1m}]", func(o *engine.Options) { o.Observers = []engine.Observer{seen} })
	g, err := engine.NewGate(b.Engine, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Protect(engine.Protect{CPU: 1e-9}, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	var v engine.Verdict
	var d engine.Denial
	req := rule.Request{User: "alice"}
	shed := uint64(0)
	for began := time.Now(); shed < 10; {
		req.Priority = rule.Low
		ok, err := g.Allow(t.Context(), &req, &v, &d)
		switch {
		case err != nil:
			t.Fatal(err)
		case time.Since(began) > time.Minute:
			t.Fatal("nothing is shed")
		case ok:
			continue
		}
		shed++
		if v.Reason != engine.Overloaded || v.Reason.String() != "overloaded" || len(v.Results) != 0 || v.Speaker() != nil || v.Places() {
			t.Fatalf("%+v", v)
		}
		if d.Cause != engine.ReducedCapacity || d.RetryAfter != time.Second || d.HTTPStatus() != 503 {
			t.Fatalf("%+v", d)
		}
		// A part of a request that goes on is not shed, nor is a check of a service.
		if ok, err := g.Continue(t.Context(), &req, &v, &d); !ok || err != nil {
			t.Fatalf("continue: %v %+v", err, d)
		}
		if err := b.Check(t.Context(), &req, &v); !v.Allowed || err != nil {
			t.Fatalf("check: %v %+v", err, v)
		}
		req.Priority = rule.Critical
		if ok, err := g.Allow(t.Context(), &req, &v, &d); !ok || err != nil || len(v.Results) == 0 {
			t.Fatalf("critical: %v %+v", err, d)
		}
	}
	if p := seen.state(); p.Shed[rule.Low] != shed || seen.denied != int(shed) || p.CPU != g.Protection().CPU {
		t.Errorf("%d were shed, but %+v, and %d were observed", shed, p, seen.denied)
	}
}
