package engine_test

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// durations are what an observer is told.
type durations []time.Duration

func (d *durations) Observe(_ *rule.Request, _ *engine.Verdict, took time.Duration) {
	*d = append(*d, took)
}

// ticking is an engine with a store whose clock is one second later each time it is read.
func ticking(t *testing.T, observers ...engine.Observer) (e *engine.Engine, reads *int64) {
	t.Helper()
	reads = new(int64)
	clock := func() weir.Micros {
		*reads++
		return start + weir.Micros(*reads*1e6)
	}
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{Clock: clock}), Observers: observers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	if err := e.Load("rules.yaml", []byte("rules: [{id: a, key: user, algorithm: fixed_window, limit: 5/1h}]")); err != nil {
		t.Fatal(err)
	}
	return e, reads
}

// The store decides by the time at which a request begins. One that follows another begins
// when that one was decided.
func TestReadsTheClockOnce(t *testing.T) {
	var took durations
	e, reads := ticking(t, &took)
	var v engine.Verdict
	req := rule.Request{User: "alice"}
	decide := func(by func() error, reading, atReading int64) {
		t.Helper()
		if err := by(); err != nil {
			t.Fatal(err)
		}
		r := &v.Results[0]
		if now := r.ResetAt - weir.Micros(r.ResetAfter.Microseconds()); *reads != reading || now != start+weir.Micros(atReading*1e6) {
			t.Errorf("after %d readings, decided at %v; want %d, and reading %d", *reads, now, reading, atReading)
		}
	}
	check := func() error { return e.Check(t.Context(), &req, &v) }
	demands := []engine.Demand{demand("d", 5, rule.Enforce, false)}

	v.Follow() // nothing
	decide(check, 2, 1)
	decide(check, 4, 3)
	v.Follow()
	decide(check, 5, 4)
	v.Follow()
	decide(func() error { return e.Demand(t.Context(), demands, &v) }, 6, 5)
	decide(check, 8, 7)
	decide(func() error { return e.Charge(t.Context(), &req, &v) }, 9, 9)
	v.Follow() // what nobody timed
	decide(check, 11, 10)
	for _, d := range took {
		if d != time.Second {
			t.Errorf("took %v", took)
			break
		}
	}
}

// Without observers nobody wants to know how long it took.
func TestReadsTheClockForTheStoreAlone(t *testing.T) {
	e, reads := ticking(t)
	var v engine.Verdict
	for i := range int64(3) {
		v.Follow()
		if err := e.Check(t.Context(), &rule.Request{User: "alice"}, &v); err != nil || *reads != i+1 {
			t.Errorf("%d readings after %d requests; %v", *reads, i+1, err)
		}
	}
}
