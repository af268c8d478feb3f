package check

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/test/chaos/plan"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

// rules are a sliding_log of 3/10s for each policy, and one limit that no client
// reaches.
func rules() plan.Rules {
	limit := weir.Limit{Algorithm: weir.SlidingLog, N: 3, Period: 10 * s}
	r := plan.Rules{{ID: "wide", Paths: []string{"/wide"}, Key: "user", Limits: []weir.Limit{{N: 1e6, Burst: 1e6, Period: s}}, OnFailure: "open", MaxCost: 1, Wide: true}}
	for _, policy := range []string{"open", "closed", "local"} {
		r = append(r, plan.Rule{ID: policy, Paths: []string{"/" + policy}, Key: "user", Limits: []weir.Limit{limit}, OnFailure: policy, MaxCost: 3})
	}
	return append(r, plan.Rule{ID: "shaped", Paths: []string{"/shaped"}, Key: "user", OnFailure: "open", MaxCost: 1,
		Limits: []weir.Limit{{Algorithm: weir.LeakyBucket, N: 3, Burst: 3, Period: 3 * s, Shape: true}}})
}

// answer is a sound one: allowed by the store, 5 ms after it was asked.
func answer(path string, sent time.Duration, change ...func(*Answer)) Answer {
	a := Answer{Call: Call{Span: Span{sent, sent + 5*ms}, Status: 200, Allowed: true, By: map[string]By{path[1:]: Store}}, Reason: "limits",
		Request: plan.Request{Path: path, User: "u", IP: "10.0.0.1", Cost: 1}}
	for _, c := range change {
		c(&a)
	}
	return a
}

func degraded(a *Answer) {
	a.Degraded, a.Reason = true, "unavailable"
	for rule := range a.By {
		a.By[rule] = Nobody
		if rule == "local" {
			a.By[rule] = Instance
		}
	}
}
func alone(a *Answer)      { a.By[a.Path[1:]] = Instance }
func unsaid(a *Answer)     { a.By = nil }
func exact(a *Answer)      { a.By[a.Path[1:]] = Store }
func denied(a *Answer)     { a.Allowed, a.Waits = false, true }
func costs3(a *Answer)     { a.Cost = 3 }
func wordless(a *Answer)   { a.Waits = false }
func instance1(a *Answer)  { a.Instance = 1 }
func unanswered(a *Answer) { a.Status, a.Error = 0, "EOF" }
func status503(a *Answer)  { a.Status = 503 }
func secondLife(a *Answer) { a.Life = 1 }
func otherUser(a *Answer)  { a.User = "v" }
func delayed(d time.Duration) func(*Answer) {
	return func(a *Answer) { a.Delays = map[string]time.Duration{"shaped": d} }
}
func took(d time.Duration) func(*Answer) {
	return func(a *Answer) { a.To = a.From + d }
}

func stalledFor(d time.Duration) func(*Timeline) {
	return func(t *Timeline) { t.Stalled(Everybody, Span{s, s + d}) }
}

// four are one more than the log has room for.
func four(path string, from time.Duration, change ...func(*Answer)) (all []Answer) {
	for i := range 4 {
		all = append(all, answer(path, from+time.Duration(i)*20*ms, change...))
	}
	return all
}

func TestChecker(t *testing.T) {
	lose := func(l Loss) func(*Timeline) { return func(t *Timeline) { t.Lose(l) } }
	sick := func(from, to time.Duration) func(*Timeline) {
		return func(t *Timeline) { t.Sick(Span{from, to}) }
	}
	join := func(parts ...[]Answer) (all []Answer) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	one := func(a Answer) []Answer { return []Answer{a} }
	for _, c := range []struct {
		name     string
		happened func(*Timeline)
		answers  []Answer
		want     string // the promise that is broken; "" if none
	}{
		{"as many as the limit", nil, four("/open", 0)[:3], ""},
		{"one more", nil, four("/open", 0), Bound},
		{"one more, in another order", nil, []Answer{four("/open", 0)[3], four("/open", 0)[1], four("/open", 0)[2], four("/open", 0)[0]}, Bound},
		{"cost counts", nil, []Answer{answer("/open", 0, costs3), answer("/open", s)}, Bound},
		{"after the period", nil, []Answer{answer("/open", 0, costs3), answer("/open", 10*s)}, ""},
		{"perhaps after the period", nil, []Answer{answer("/open", 0, costs3), answer("/open", 9990*ms, took(30*ms))}, ""},
		{"just within the period", nil, []Answer{answer("/open", 0, costs3), answer("/open", 9900*ms)}, Bound},
		{"one by one within the period", nil, []Answer{answer("/open", 0), answer("/open", 6*s), answer("/open", 7*s), answer("/open", 9900*ms)}, Bound},
		{"denials cost nothing", nil, append(four("/open", 0, denied), four("/open", s)[:3]...), ""},
		{"users apart", nil, append(four("/open", 0)[:3], four("/open", 0, otherUser)[:3]...), ""},

		{"a loss between", lose(Loss{Span: Span{2 * s, 3 * s}, Lives: 1}), append(four("/open", 0)[:3], four("/open", 4*s)[:3]...), ""},
		{"too much after a loss", lose(Loss{Span: Span{2 * s, 3 * s}, Lives: 1}), four("/open", 4*s), Bound},
		{"too much after a loss, and little before", lose(Loss{Span: Span{2 * s, 3 * s}, Lives: 1}), join(four("/open", 0)[:2], four("/open", 4*s)), Bound},
		{"too much before a loss", lose(Loss{Span: Span{2 * s, 3 * s}, Lives: 1}), four("/open", 0), Bound},
		{"too much for two lives", lose(Loss{Span: Span{2 * s, 3 * s}, Lives: 1}), join(four("/open", 0)[:3], four("/open", 2500*ms)), Bound},
		{"two lives in one loss", lose(Loss{Span: Span{2 * s, 3 * s}, Lives: 2}), join(four("/open", 0)[:3], four("/open", 2500*ms), four("/open", 4*s)[:2]), ""},
		{"a loss that goes on", lose(Loss{Span: Span{2 * s, Open}, Lives: 1}), join(four("/open", 0)[:3], four("/open", 4*s)[:3]), ""},
		{"a loss elsewhere", lose(Loss{Span: Span{2 * s, 3 * s}, Lives: 1, Has: func(slot int) bool { return slot != 7 }}), join(four("/open", 0)[:3], four("/open", 4*s)[:3]), Bound},
		{"a loss here", lose(Loss{Span: Span{2 * s, 3 * s}, Lives: 1, Has: func(slot int) bool { return slot == 7 }}), join(four("/open", 0)[:3], four("/open", 4*s)[:3]), ""},

		{"shaped, one after the other", nil, join(four("/shaped", 0)[:3], four("/shaped", 100*ms, delayed(s))[:1]), Bound},
		{"shaped, decided before a loss", lose(Loss{Span: Span{s, 2 * s}, Lives: 1}), join(four("/shaped", 0, delayed(3*s))[:3], four("/shaped", 2500*ms)[:3]), ""},
		{"shaped, too much after a loss", lose(Loss{Span: Span{s, 2 * s}, Lives: 1}), four("/shaped", 2500*ms, delayed(3*s)), Bound},
		{"shaped, in turn", nil, join(four("/shaped", 0)[:3], four("/shaped", 2500*ms, delayed(s))[:1]), ""},

		{"open without the store", sick(0, s), four("/open", 0, degraded), ""},
		{"open, and denied", sick(0, s), four("/open", 0, degraded, denied), Policy},
		{"closed", sick(0, s), four("/closed", 0, degraded, denied), ""},
		{"closed, and allowed", sick(0, s), one(answer("/closed", 0, degraded)), Policy},
		{"closed, and counted alone", sick(0, s), one(answer("/closed", 0, degraded, alone)), Policy},
		{"open, and counted alone", sick(0, s), one(answer("/open", 0, degraded, alone)), ""},
		{"open, and counted alone too often", sick(0, s), four("/open", 0, degraded, alone)[:2], Bound},
		{"local, and not counted", sick(0, s), one(answer("/local", 0, degraded, func(a *Answer) { a.By["local"] = Nobody })), Policy},
		{"a rule is not in the answer", nil, one(answer("/open", 0, unsaid)), Sound},
		{"degraded without need", sick(0, s), one(answer("/open", 0, degraded, exact)), Sound},
		{"local has its share", sick(0, s), one(answer("/local", 0, degraded)), ""},
		{"local takes more", sick(0, s), four("/local", 0, degraded)[:2], Bound},
		{"local at two instances", sick(0, s), []Answer{answer("/local", 0, degraded), answer("/local", 0, degraded, instance1)}, ""},
		{"local in two lives", sick(0, s), []Answer{answer("/local", 0, degraded), answer("/local", 0, degraded, secondLife)}, ""},
		{"local, while the store loses", func(t *Timeline) { sick(0, s)(t); lose(Loss{Span: Span{0, s}, Lives: 9})(t) }, four("/local", 0, degraded)[:2], Bound},
		{"local beside the store", sick(0, s), append(four("/local", 0)[:3], answer("/local", 0, degraded)), ""},

		{"degraded while the store is well", nil, one(answer("/open", 10*s, degraded)), Recovers},
		{"degraded soon after", sick(0, s), one(answer("/open", 2900*ms, degraded)), ""},
		{"degraded long after", sick(0, s), one(answer("/open", 3100*ms, degraded)), Recovers},
		{"degraded before the trouble", sick(11*s, 12*s), one(answer("/open", 10*s, degraded)), Recovers},
		{"degraded by a stall", func(t *Timeline) { t.Stalled(Everybody, Span{9900 * ms, 9930 * ms}) }, one(answer("/open", 10*s, degraded)), ""},
		{"degraded by many short stalls", func(t *Timeline) {
			for at := 10 * s; at < 10*s+50*ms; at += 10 * ms {
				t.Stalled(Everybody, Span{at, at + 6*ms})
			}
		}, one(answer("/open", 10*s, degraded, took(54*ms))), ""},
		{"short stalls are too few for that", func(t *Timeline) {
			t.Stalled(Everybody, Span{10 * s, 10*s + 9*ms})
			t.Stalled(0, Span{10*s + 20*ms, 10*s + 29*ms})
		}, one(answer("/open", 10*s, degraded, took(54*ms))), Recovers},
		{"a stall is too short for that", func(t *Timeline) { t.Stalled(Everybody, Span{9900 * ms, 9910 * ms}) }, one(answer("/open", 10*s, degraded)), Recovers},
		{"a stall is too long ago", func(t *Timeline) { t.Stalled(Everybody, Span{9600 * ms, 9630 * ms}) }, one(answer("/open", 10*s, degraded)), Recovers},
		{"a stall of another", func(t *Timeline) { t.Stalled(1, Span{9900 * ms, 9930 * ms}) }, one(answer("/open", 10*s, degraded)), Recovers},
		{"degraded after its start", func(t *Timeline) { t.Down(0, Span{8 * s, 9 * s}) }, one(answer("/open", 10*s, degraded)), ""},
		{"another's start is no excuse", func(t *Timeline) { t.Down(1, Span{8 * s, 9 * s}) }, one(answer("/open", 10*s, degraded)), Recovers},

		{"in time", nil, one(answer("/open", 0, took(149*ms))), ""},
		{"late", nil, one(answer("/open", 0, took(151*ms))), InTime},
		{"late twice", nil, []Answer{answer("/open", 0, took(400*ms)), answer("/open", s, took(151*ms))}, InTime},
		{"late by a stall", func(t *Timeline) { t.Stalled(Everybody, Span{10 * ms, 60 * ms}) }, one(answer("/open", 0, took(180*ms))), ""},
		{"late by stalls of its own", func(t *Timeline) { t.Stalled(0, Span{10 * ms, 60 * ms}) }, one(answer("/open", 0, took(180*ms))), ""},
		{"stalls of another are no excuse", func(t *Timeline) { t.Stalled(1, Span{10 * ms, 60 * ms}) }, one(answer("/open", 0, took(180*ms))), InTime},
		{"later than stalls that overlap", func(t *Timeline) { t.Stalled(0, Span{10 * ms, 60 * ms}); t.Stalled(Everybody, Span{20 * ms, 60 * ms}) }, one(answer("/open", 0, took(220*ms))), InTime},
		{"later than the stall", func(t *Timeline) {
			t.Stalled(Everybody, Span{10 * ms, 60 * ms})
			t.Stalled(Everybody, Span{20 * ms, 50 * ms})
		}, one(answer("/open", 0, took(220*ms))), InTime},

		{"an error", nil, one(answer("/open", 0, status503)), NoError},
		{"no answer", nil, one(answer("/open", 0, unanswered)), NoError},
		{"no answer for long", nil, one(answer("/open", s, unanswered, took(3*s))), NoError},
		{"no answer for long, and the machine stalled for a part of it", stalledFor(2 * s), one(answer("/open", s, unanswered, took(3*s))), NoError},
		{"no answer for long, and the machine stalled", stalledFor(3 * s), one(answer("/open", s, unanswered, took(3100*ms))), ""},
		{"no answer at once, and the machine stalled", stalledFor(3 * s), one(answer("/open", s, unanswered, took(s))), NoError},
		{"no answer from who is not there", func(t *Timeline) { t.Down(0, Span{0, Open}) }, one(answer("/open", s, unanswered)), ""},
		{"no answer from another", func(t *Timeline) { t.Down(1, Span{0, Open}) }, one(answer("/open", s, unanswered)), NoError},
		{"no answer after it is ready", func(t *Timeline) { t.Down(0, Span{0, Open}); t.Ready(0, s) }, one(answer("/open", 2*s, unanswered)), NoError},

		{"denied in vain", nil, one(answer("/wide", 0, denied)), Sound},
		{"denied without a word", nil, one(answer("/open", 0, denied, wordless)), Sound},
	} {
		checker := New(rules(), 50*ms, func(string) int { return 7 })
		if c.happened != nil {
			c.happened(checker.Timeline)
		}
		for _, a := range c.answers {
			checker.Note(a)
		}
		checker.Judge(Open)
		tally, violations, _ := checker.Result()
		for _, v := range violations {
			if v.Promise != c.want {
				t.Errorf("%s: %+v, want %q", c.name, v, c.want)
			}
		}
		if c.want != "" && len(violations) == 0 {
			t.Errorf("%s: nothing was found, want %q", c.name, c.want)
		}
		if c.name == "late twice" && len(violations) != 2 {
			t.Errorf("%s: it was found %d times", c.name, len(violations))
		}
		if tally.Requests != int64(len(c.answers)) || len(checker.History()) != len(c.answers) {
			t.Errorf("%s: %d answers of %d were checked", c.name, tally.Requests, len(c.answers))
		}
	}
}

// A recent answer is checked later, when the faults of that time are known.
func TestHindsight(t *testing.T) {
	checker := New(rules(), 50*ms, func(string) int { return 0 })
	for _, a := range append(four("/open", 4*s)[:3], four("/open", 0)[:3]...) { // they come as they come
		checker.Note(a)
	}
	checker.Judge(3 * s)
	if tally, _, _ := checker.Result(); tally.Requests != 3 {
		t.Errorf("%d were checked, want 3", tally.Requests)
	}
	checker.Timeline.Lose(Loss{Span: Span{s, 2 * s}, Lives: 1})
	checker.Judge(Open)
	if tally, violations, _ := checker.Result(); tally.Requests != 6 || tally.Allowed != 6 || len(violations) > 0 {
		t.Errorf("%+v, %+v", tally, violations)
	}
}

// Recovery ends with the first answer of each instance for which it asked the store again.
func TestRecovery(t *testing.T) {
	checker := New(rules(), 50*ms, func(string) int { return 0 })
	checker.Timeline.Sick(Span{s, 2 * s})
	checker.Timeline.Sick(Span{10 * s, 11 * s})
	for _, a := range []Answer{
		answer("/wide", 1500*ms, degraded), answer("/wide", 2100*ms, degraded),
		answer("/wide", 2200*ms), answer("/wide", 2300*ms, instance1), answer("/wide", 3900*ms, degraded), answer("/wide", 4*s),
		answer("/wide", 11100*ms),
	} {
		checker.Note(a)
	}
	checker.Judge(Open)
	if tally, violations, _ := checker.Result(); tally.Recovery != 305*ms || len(violations) > 0 {
		t.Errorf("%v, %v", tally.Recovery, violations)
	}
}

// Events may come in any order: those that leave later were not always decided later.
func TestDisorder(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {3, 0, 1, 2}} {
		m, found := &meter{bound: 3, period: 10 * s}, false
		for _, n := range order {
			at := Span{time.Duration(n) * s, time.Duration(n)*s + 5*ms}
			found = m.add(event{Span: at, Leaves: at, Cost: 1}, NewTimeline()) != nil || found
		}
		late := Span{20 * s, 20 * s} // too late to be together with any of them
		if m.add(event{Span: Span{0, 0}, Leaves: late, Cost: 1}, NewTimeline()) != nil || !found {
			t.Errorf("in the order %v nothing is found", order)
		}
	}
	m, last := &meter{bound: 3, period: 10 * s}, (*excess)(nil)
	for _, from := range []time.Duration{30 * s, 14 * s, 12 * s, 11 * s, 13 * s} {
		last = m.add(event{Leaves: Span{from, from}, Cost: 1}, NewTimeline())
	}
	if last == nil || last.got != 4 {
		t.Errorf("what leaves before others: %+v", last)
	}
}

// A violation names the faults around it; there is an end to how many are kept.
func TestReport(t *testing.T) {
	checker := New(rules(), 50*ms, func(string) int { return 0 })
	checker.Timeline.End(checker.Timeline.Begin("long ago", 0), s)
	checker.Timeline.End(checker.Timeline.Begin("just before", 18*s), 19*s)
	for _, a := range four("/open", 20*s) {
		checker.Note(a)
	}
	for range 2 * reported {
		checker.Note(answer("/open", 40*s, status503))
	}
	checker.Judge(Open)
	_, violations, more := checker.Result()
	v := violations[0]
	if v.Rule != "open" || v.Key != "user:u" || len(v.Events) != 4 || !strings.Contains(v.What, "4 units") {
		t.Errorf("%+v", v)
	}
	if len(v.Faults) != 1 || v.Faults[0].What != "just before" {
		t.Errorf("the faults around it are %v", v.Faults)
	}
	if len(violations) != reported || more != reported+1 {
		t.Errorf("%d violations and %d more", len(violations), more)
	}
}

// Old answers are folded away: what is kept does not depend on how long a run takes.
func TestBoundedMemory(t *testing.T) {
	checker := New(rules(), 50*ms, func(string) int { return 0 })
	for i := range 3 * remembered {
		checker.Note(answer("/open", time.Duration(i)*4*s))
		if i%1000 == 0 {
			checker.Judge(Open)
		}
	}
	checker.Judge(Open)
	_, violations, _ := checker.Result()
	kept := 0
	for _, m := range checker.meters {
		kept += len(m.events)
	}
	if len(violations) > 0 || kept > 10 || len(checker.History()) != remembered {
		t.Errorf("%d violations, %d events and %d answers are kept", len(violations), kept, len(checker.History()))
	}
	if last := checker.History()[remembered-1]; last.From != (3*remembered-1)*4*s {
		t.Errorf("the last in the history is of %v", last.From)
	}
}

func megabytes(all ...int64) (samples []Sample) {
	for _, n := range all {
		samples = append(samples, Sample{Resident: n << 20})
	}
	return samples
}

func TestGrown(t *testing.T) {
	for _, c := range []struct {
		name    string
		samples []Sample
		want    int
	}{
		{"none", nil, 0},
		{"steady", []Sample{{Goroutines: 30, Resident: 50 << 20}, {Goroutines: 40, Resident: 60 << 20}}, 0},
		{"goroutines", []Sample{{Goroutines: 30}, {Goroutines: 51}}, 1},
		{"a peak", []Sample{{Goroutines: 30}, {Goroutines: 90}, {Goroutines: 30}}, 0},
		{"memory", megabytes(50, 60, 70, 80, 90, 100, 110), 1},
		{"memory at first", megabytes(50, 80, 80, 85, 85, 85), 0},
		{"a peak of memory at the end", megabytes(50, 80, 80, 85, 85, 185), 0},
		{"a peak of memory before", megabytes(50, 80, 185, 80, 110, 115, 120), 1},
		{"too short for memory", megabytes(50, 60, 99, 120), 0},
		{"another life", []Sample{{Goroutines: 30}, {Goroutines: 90, Life: 1}}, 0},
		{"another instance", []Sample{{Goroutines: 30}, {Goroutines: 90, Instance: 1}}, 0},
	} {
		if got := Grown(c.samples); len(got) != c.want {
			t.Errorf("%s: %+v, want %d", c.name, got, c.want)
		}
	}
}

func TestSpans(t *testing.T) {
	var all spans
	for _, n := range []Span{{10, 20}, {40, 50}, {15, 30}, {0, 5}, {60, 70}, {35, 65}, {5, 10}} {
		all = all.add(n)
	}
	if len(all) != 2 || all[0] != (Span{0, 30}) || all[1] != (Span{35, 70}) {
		t.Errorf("%v", all)
	}
	for _, c := range []struct {
		of   Span
		want time.Duration
	}{{Span{0, 100}, 65}, {Span{20, 40}, 15}, {Span{31, 34}, 0}, {Span{80, 90}, 0}} {
		if got := all.within(c.of); got != c.want {
			t.Errorf("%v of %v are covered, want %v", got, c.of, c.want)
		}
	}
}
