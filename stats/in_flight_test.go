package stats

import (
	"math"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/stats/archive"
)

const inFlightRules = "rules: [{id: api, key: user, concurrency: 100}, {id: rate, key: user, limit: 1000/1h}]"

// A request counts in every second in which it is in flight, for as long as it is.
func TestInFlight(t *testing.T) {
	d := newDesk(t, inFlightRules)
	d.check(t, alice, 3) // which are never given back
	one, two := d.Places("api"), d.Places("api")
	one.Take()
	d.clock.advance(500 * time.Millisecond)
	two.Take()
	d.clock.advance(-500 * time.Millisecond) // pass moves whole seconds
	d.pass(1)
	d.pass(2)
	d.clock.advance(250 * time.Millisecond)
	one.Leave(3250 * time.Millisecond)
	two.Leave(2750 * time.Millisecond)
	d.clock.advance(-250 * time.Millisecond)
	d.pass(1)
	d.Places("api").End(700 * time.Millisecond)
	d.clock.advance(300 * time.Millisecond)
	d.Places("api").Hold(1, weir.MicrosOf(d.clock.now().Add(time.Minute)))
	d.clock.advance(-300 * time.Millisecond)
	d.pass(1)

	s := testkit.Must(d.Series(t.Context(), Query{From: noon, To: noon.Add(6 * time.Second), Step: time.Second, Rule: "api"}))(t)
	for i, want := range []float64{1.5, 2, 2, 0.5, 0.7, 0} {
		p := s.Points[i].InFlight
		switch {
		case want == 0 && p != nil:
			t.Errorf("second %d: %+v, want none", i, p)
		case want > 0 && (p == nil || math.Abs(p.Mean-want) > 1e-9):
			t.Errorf("second %d: %+v, want %v", i, p, want)
		}
	}
	if p := s.Points[0].InFlight; p.Highest != 3 || p.Held.Count != 0 {
		t.Errorf("%+v", p)
	}
	sum := testkit.Must(d.Summary(t.Context(), noon, noon.Add(10*time.Second)))(t)
	for _, r := range sum.Rules {
		in := r.InFlight
		switch {
		case r.Rule == "rate" && in == nil:
		case r.Rule == "api" && math.Abs(in.Mean-0.67) < 1e-9 && in.Highest == 3 && in.Held.Count == 3 && in.Held.Mean == 6700*time.Millisecond/3/1000*1000 &&
			in.Held.P50 >= 2750*time.Millisecond && in.Held.P99 < 3250*time.Millisecond*9/8:
		default:
			t.Errorf("%s: %+v", r.Rule, in)
		}
	}
	if s := testkit.Must(d.Series(t.Context(), Query{From: noon, To: noon.Add(time.Second), Rule: "rate"}))(t); s.Points[0].InFlight != nil {
		t.Errorf("%+v", s.Points[0])
	}
}

// A hold counts from the reservation on, until it has ended, or has expired, on whichever of two
// instances that is.
func TestInFlightOfHolds(t *testing.T) {
	one := newDesk(t, inFlightRules)
	two := newDesk(t, inFlightRules)
	two.Recorder = newRecorder(t, Options{Archive: one.memory, Clock: two.clock.now})
	two.Recorder.Install(tableOf(t, inFlightRules), 1)
	pass := func(seconds int) {
		for range seconds {
			one.pass(1)
			two.pass(1)
		}
	}
	until := func(d time.Duration) weir.Micros { return weir.MicrosOf(noon.Add(d)) }
	one.Places("api").Hold(1, until(6*time.Second)) // and expires
	pass(1)
	one.Places("api").Hold(1, until(10*time.Second))
	pass(1)
	two.Places("api").Hold(-1, until(10*time.Second)) // is extended elsewhere
	two.Places("api").Hold(1, until(12*time.Second))
	pass(2)
	one.Places("api").Hold(-1, until(12*time.Second)) // and ends at the first
	one.Places("api").End(3 * time.Second)
	pass(12)
	s := testkit.Must(one.Series(t.Context(), Query{From: noon, To: noon.Add(16 * time.Second), Step: time.Second, Rule: "api"}))(t)
	for i, want := range []float64{1, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} {
		got := 0.0
		if in := s.Points[i].InFlight; in != nil {
			got = in.Mean
		}
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("second %d: %v, want %v", i, got, want)
		}
	}
	if s.InFlight == nil || s.InFlight.Held.Count != 1 || s.InFlight.Held.Mean != 3*time.Second {
		t.Errorf("%+v", s.InFlight)
	}
}

// A rule is listed while its requests are in flight, although none begins.
func TestInFlightOfQuietRule(t *testing.T) {
	d := newDesk(t, inFlightRules)
	c := d.Places("api")
	c.Take()
	d.pass(3)
	s := testkit.Must(d.Summary(t.Context(), noon.Add(time.Second), noon.Add(2*time.Second)))(t)
	if len(s.Rules) != 1 || s.Rules[0].Rule != "api" || s.Rules[0].InFlight.Mean != 1 || s.Rules[0].Counts != (archive.Counts{}) {
		t.Errorf("%+v", s.Rules)
	}
	c.Leave(time.Second)
}

// Requests of a rule that was removed count until they end, and then nothing is left of it. Rules
// that are not counted apart share a name.
func TestInFlightOfRemovedRule(t *testing.T) {
	d := newDesk(t, inFlightRules)
	kept := d.Places("api")
	kept.Take()
	d.install(t, "rules: [{id: b, key: user, limit: 5/1h}]")
	d.Places("api").Hold(1, weir.MicrosOf(noon.Add(time.Second)))
	d.pass(2)
	s := testkit.Must(d.Summary(t.Context(), noon, noon.Add(2*time.Second)))(t)
	byID := map[string]*InFlight{}
	for _, r := range s.Rules {
		byID[r.Rule] = r.InFlight
	}
	if byID["api"].Mean != 1 || byID[archive.Other].Mean != 0.5 {
		t.Errorf("%+v, %+v", byID["api"], byID[archive.Other])
	}
	kept.Leave(2 * time.Second)
	d.pass(2)
	d.flights.Range(func(id, _ any) bool {
		t.Errorf("%v is still counted", id)
		return true
	})
}

// The usage of a rate has nothing of the requests in flight, although places expire after the
// period of the rate.
func TestUsageBesideInFlight(t *testing.T) {
	d := newDesk(t, "rules: [{id: api, key: user, algorithm: fixed_window, limit: 100/1m, concurrency: 3, hold_ttl: 1m}]")
	d.check(t, alice, 5)
	d.pass(10)
	u := testkit.Must(d.Usage(t.Context(), "api", noon, noon.Add(10*time.Second)))(t)
	if len(u.Limits) != 1 || u.Limits[0].Limit != 100 || u.Limits[0].Requests != 3 || u.Limits[0].Denied != 0 || u.Limits[0].Max != 3 {
		t.Errorf("%+v", u.Limits)
	}
}

// To count a place allocates nothing.
func TestInFlightAllocations(t *testing.T) {
	d := newDesk(t, inFlightRules)
	var c engine.PlaceCounter
	for range 100 { // all stripes have their histograms
		d.Places("api").End(time.Second)
	}
	n := testing.AllocsPerRun(100, func() {
		c = d.Places("api")
		c.Reach(5)
		c.Take()
		c.Leave(time.Second)
	})
	if n > 0 && !testkit.Race {
		t.Errorf("%v allocations", n)
	}
}
