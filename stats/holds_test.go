package stats

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/store/memory"
)

// Holds are counted by rule when something happens to them, and the statistics say how good
// the estimates were. Only a reservation is a request.
func TestHolds(t *testing.T) {
	d := newDesk(t, "rules: [{id: a, key: user, limit: 1000/1h}, {id: gone, key: user, limit: 900/1h}]")
	store := memory.New(memory.Options{Clock: func() weir.Micros { return weir.Micros(d.clock.micros.Load()) }})
	e := testkit.Must(engine.New(engine.Options{Store: store, Observers: []engine.Observer{d.Recorder}}))(t)
	e.Install(tableOf(t, "rules: [{id: a, key: user, limit: 1000/1h}, {id: gone, key: user, limit: 900/1h}]"), 1)
	reserve := func(cost int64) weir.HoldID {
		t.Helper()
		var v engine.Verdict
		req := alice
		req.Cost = cost
		if err := e.Reserve(t.Context(), &req, time.Hour, &v); err != nil {
			t.Fatal(err)
		}
		return v.Hold
	}
	settle := func(id weir.HoldID, used int64) { testkit.Must(e.Settle(t.Context(), id, engine.Units(used)))(t) }

	less, more, none := reserve(100), reserve(100), reserve(100)
	reserve(5000) // denied
	d.pass(65)
	settle(less, 25)
	settle(less, 99) // repeated
	settle(more, 200)
	testkit.Must(e.Cancel(t.Context(), none))(t)
	reserve(10) // which is never settled
	d.pass(1)
	e.Install(tableOf(t, "rules: [{id: a, key: user, limit: 1000/1h}]"), 2)
	req := alice
	req.Cost = 20_000
	var v engine.Verdict
	if err := e.Charge(t.Context(), &req, &v); err != nil {
		t.Fatal(err)
	}
	flush(t, d.Recorder)

	s := testkit.Must(d.Holds(t.Context(), HoldsQuery{Rule: "a", From: noon, To: noon.Add(2 * time.Minute), Step: time.Minute}))(t)
	want := archive.HoldCounts{Opened: 4, Settled: 2, Cancelled: 1, Overruns: 1, Charges: 1, Reserved: 200, Used: 225, Charged: 20_000, Excess: v.Results[0].Excess}
	if s.Total.HoldCounts != want || v.Results[0].Excess == 0 {
		t.Errorf("%+v, want %+v", s.Total, want)
	}
	if s.Total.Ratio(0.5) != 0.25 || s.Total.Ratio(0.99) != 2 {
		t.Errorf("ratios: %v, %v", s.Total.Ratio(0.5), s.Total.Ratio(0.99))
	}
	if len(s.Points) != 2 || !s.Points[1].Time.Equal(noon.Add(time.Minute)) || s.Points[0].Opened != 3 || s.Points[0].Settled != 0 || s.Points[1].Opened != 1 || s.Points[1].Used != 225 {
		t.Errorf("%+v", s.Points)
	}
	if s := testkit.Must(d.Holds(t.Context(), HoldsQuery{Rule: "gone", From: noon, To: noon.Add(time.Hour)}))(t); s.Total.Settled != 2 || s.Total.Charges != 0 {
		t.Errorf("of a rule that is gone: %+v", s.Total)
	}
	if s := testkit.Must(d.Summary(t.Context(), noon, noon.Add(2*time.Minute)))(t); s.Counts.Total() != 5 {
		t.Errorf("%d requests, want 5", s.Counts.Total())
	}
	if _, err := d.Holds(t.Context(), HoldsQuery{Rule: "a", From: noon, To: noon}); err == nil {
		t.Error("no time was accepted")
	}

	// A hold of a rule that is gone counts with the others.
	d.ObserveHold(engine.HoldEvent{Kind: engine.SettledHold, Parts: []engine.SettledPart{{Rule: "gone", Reserved: 3, Used: 1}}})
	flush(t, d.Recorder)
	if s := testkit.Must(d.Holds(t.Context(), HoldsQuery{Rule: archive.Other, From: noon, To: noon.Add(time.Hour)}))(t); s.Total.Reserved != 3 {
		t.Errorf("%+v", s.Total)
	}
}

// What was denied because of too many open holds is told apart from what a limit denied, and counts once for a rule of several limits.
func TestCrowdedHolds(t *testing.T) {
	const rules = "rules: [{id: a, match: {path: /a}, key: global, limits: [200000/1h, 300000/1d]}, {id: b, match: {path: /b}, key: user, limit: 5/1h}]"
	d := newDesk(t, rules)
	e := testkit.Must(engine.New(engine.Options{Store: memory.New(memory.Options{MaxKeys: 4096}), Observers: []engine.Observer{d.Recorder}}))(t)
	e.Install(tableOf(t, rules), 1)
	for _, path := range []string{"/a", "/b"} {
		req, v := alice, engine.Verdict{Allowed: true}
		for req.Path = path; v.Allowed; {
			testkit.OK(t, e.Reserve(t.Context(), &req, time.Hour, &v))
		}
	}
	flush(t, d.Recorder)
	for rule, want := range map[string]int64{"a": 1, "b": 0} {
		s := testkit.Must(d.Holds(t.Context(), HoldsQuery{Rule: rule, From: noon, To: noon.Add(time.Minute)}))(t)
		latest := testkit.Must(d.Denials(t.Context(), LatestQuery{Rule: rule}))(t)
		if s.Total.Crowded != want || s.Total.Opened == 0 || len(latest.Events) != 1 || latest.Events[0].Crowded != (want == 1) {
			t.Errorf("%s: %+v, %+v", rule, s.Total.HoldCounts, latest.Events)
		}
	}
}
