package stats

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// Without a step, a series has a few hundred points of the data that is still kept.
func TestSteps(t *testing.T) {
	d := newDesk(t, someRules)
	for _, c := range []struct {
		ago, long, step time.Duration
		level           int
		want            time.Duration
	}{
		{time.Minute, time.Minute, 0, 0, time.Second},
		{5 * time.Minute, 5 * time.Minute, 0, 0, time.Second},
		{time.Hour, time.Hour, 0, 0, 10 * time.Second},
		{time.Hour, time.Hour, time.Minute, 1, time.Minute},
		{time.Hour, time.Hour, 90 * time.Second, 0, 90 * time.Second},
		{2 * time.Hour, time.Minute, time.Second, 1, time.Minute}, // seconds are gone
		{6 * time.Hour, 6 * time.Hour, 0, 1, time.Minute},
		{24 * time.Hour, 24 * time.Hour, 0, 1, 5 * time.Minute},
		{7 * 24 * time.Hour, 7 * 24 * time.Hour, 0, 2, time.Hour},
		{7 * 24 * time.Hour, 7 * 24 * time.Hour, time.Minute, 2, time.Hour},
		{30 * 24 * time.Hour, 30 * 24 * time.Hour, 0, 2, 6 * time.Hour},
		{365 * 24 * time.Hour, 365 * 24 * time.Hour, 0, 3, 24 * time.Hour},
		{100 * 24 * time.Hour, time.Hour, 0, 3, 24 * time.Hour},
	} {
		from := d.clock.now().Add(-c.ago)
		g, err := d.plan(d.archive, from, from.Add(c.long), c.step, MaxPoints)
		if err != nil || g.level != c.level || g.length() != c.want {
			t.Errorf("%v ago, for %v by %v: level %d, %v, %v; want %d, %v", c.ago, c.long, c.step, g.level, g.length(), err, c.level, c.want)
		}
	}
}

// Whatever the step, the points add up to what happened, and each is in its place.
func TestSeries(t *testing.T) {
	d := newDesk(t, someRules)
	for i := range 600 {
		d.check(t, rule.Request{User: fmt.Sprint(i), Tier: "pro"}, 1+i%2)
		d.pass(1)
	}
	flush(t, d.Recorder)
	for _, step := range []time.Duration{0, time.Second, 7 * time.Second, time.Minute, time.Hour} {
		s, err := d.Series(t.Context(), Query{From: noon, To: d.clock.now(), Step: step})
		if err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		for i, p := range s.Points {
			total += p.Counts.Total()
			if !p.Time.Equal(s.From.Add(time.Duration(i)*s.Step)) || p.Rate*s.Step.Seconds() != float64(p.Counts.Total()) {
				t.Errorf("step %v, point %d: %+v", step, i, p)
			}
		}
		if total != 900 || len(s.Points) != int((s.To.Sub(s.From))/s.Step) || s.Step == time.Second && s.Points[1].Counts.Total() != 2 {
			t.Errorf("step %v: %d requests in %d points", s.Step, total, len(s.Points))
		}
	}
	for q, want := range map[Query]int64{
		{Rule: "api"}: 900, {Rule: "api", Tier: "pro"}: 900, {Rule: "api", Tier: NoTier}: 0,
		{Rule: "soon", Tier: archive.Other}: 900, {Rule: "none"}: 0,
	} {
		q.From, q.To, q.Step = noon, d.clock.now(), time.Minute
		s, err := d.Series(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		for _, p := range s.Points {
			total += p.Counts.Total()
		}
		if total != want {
			t.Errorf("%s of %s: %d, want %d", q.Tier, q.Rule, total, want)
		}
	}
	for _, q := range []Query{
		{From: noon, To: noon}, {From: noon, To: noon.Add(-time.Hour)}, {From: noon, To: d.clock.now(), Step: -1},
		{From: noon.Add(-23 * time.Hour * 200), To: noon.Add(1e6 * time.Hour), Step: time.Second},
	} {
		var wrong *QueryError
		if _, err := d.Series(t.Context(), q); !errors.As(err, &wrong) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if _, err := d.Summary(t.Context(), noon, noon); err == nil {
		t.Error("no time at all is summed up")
	}
}

// For a window, the limit that is suggested would have denied the share that was asked
// for: tried on the same requests.
func TestSuggest(t *testing.T) {
	d := newDesk(t, "rules: [{id: api, key: user, algorithm: fixed_window, limits: [1000/1m, 100000/1h], tiers: {pro: 50000/1m}}]")
	chance := rand.New(rand.NewPCG(3, 4))
	var minutes [][]string // who came
	count := 30
	if testkit.Race {
		count = 5
	}
	for range count {
		var came []string
		for user := range 100 {
			n := 1 + int(chance.ExpFloat64()*40)
			for range n {
				came = append(came, fmt.Sprint("user", user))
			}
		}
		minutes = append(minutes, came)
		for i, user := range came {
			d.check(t, rule.Request{User: user}, 1)
			if i%100 == 0 {
				d.tick(d.clock.now()) // so few that each is looked at
			}
		}
		d.check(t, rule.Request{User: "paying", Tier: "pro"}, 3)
		d.pass(60)
	}
	flush(t, d.Recorder)
	all, err := d.Suggest(t.Context(), "api", noon, d.clock.now())
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	s := all[0]
	if s.Tier != "" || s.Period != time.Minute || s.Denied != 0 || len(s.Targets) != 2 || all[2].Tier != "pro" || all[2].Requests != int64(3*count) {
		t.Fatalf("%+v", all)
	}
	denied := func(limit int64) float64 {
		no, total := 0, 0
		for _, came := range minutes {
			used := map[string]int64{}
			for _, user := range came {
				total++
				if used[user]++; used[user] > limit {
					no++
				}
			}
		}
		return float64(no) / float64(total)
	}
	for _, target := range s.Targets {
		if got := denied(target.Units); got > target.Share || target.Above {
			t.Errorf("%d would have denied %v, more than %v", target.Units, got, target.Share)
		}
		if less := target.Units * 7 / 8; denied(less-1) <= target.Share {
			t.Errorf("%d would have been enough for %v, not %d", less-1, target.Share, target.Units)
		}
	}
	// A limit that denies too much already cannot say what would be enough.
	d.install(t, "rules: [{id: api, key: user, algorithm: fixed_window, limit: 10/1m}]")
	d.pass(60)
	begin := d.clock.now()
	for range 10 {
		d.check(t, alice, 100)
		d.tick(d.clock.now())
	}
	d.pass(60)
	flush(t, d.Recorder)
	all, err = d.Suggest(t.Context(), "api", begin, d.clock.now(), 0.001, 0.995)
	if err != nil || len(all) != 1 || all[0].Denied != 990 || !all[0].Targets[0].Above || all[0].Targets[0].Units != 10 || all[0].Targets[1].Above {
		t.Errorf("%+v, %v", all, err)
	}
	if none, err := d.Suggest(t.Context(), "none", noon, d.clock.now()); err != nil || len(none) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
	if _, err := d.Suggest(t.Context(), "api", noon, d.clock.now(), 2); err == nil {
		t.Error("a share of 2 is accepted")
	}
	if _, err := d.Suggest(t.Context(), "api", noon, noon); err == nil {
		t.Error("no time at all is accepted")
	}
}

// A suggested limit, applied as it is written, denies the same requests at most as often as it
// says, whatever the algorithm and however the requests come.
func TestSuggestedLimitIsEnough(t *testing.T) {
	const seconds = 120
	// When clients come, in milliseconds of a second.
	patterns := map[string]func(chance *rand.Rand) []int{
		"steady": func(*rand.Rand) (at []int) {
			for i := range 50 {
				at = append(at, 20*i)
			}
			return at
		},
		"bursts": func(chance *rand.Rand) []int {
			return make([]int, chance.IntN(2)*chance.IntN(30))
		},
		"random": func(chance *rand.Rand) (at []int) {
			for range int(chance.ExpFloat64() * 20) {
				at = append(at, chance.IntN(1000))
			}
			slices.Sort(at)
			return at
		},
	}
	for _, written := range []string{
		"limit: 1000/1s", "limit: 200/1s, burst: 600", "limit: 9000/1m", "limit: 200/1s, algorithm: leaky_bucket",
		"limit: 9000/1m, algorithm: fixed_window", "limit: 9000/1m, algorithm: sliding_log", "limit: 9000/1m, algorithm: sliding_window",
		"limit: 300/1s, algorithm: sliding_window, count_denied: true", "limit: 9000/1m, algorithm: sliding_buckets",
	} {
		for name, pattern := range patterns {
			if name != "random" && testkit.Race {
				continue
			}
			t.Run(written+" "+name, func(t *testing.T) {
				// The same requests each time.
				play := func(limit string) (d *desk, denied, all int) {
					d = newDesk(t, "rules: [{id: api, key: user, "+limit+"}]")
					chance := rand.New(rand.NewPCG(5, 6))
					var v engine.Verdict
					for range seconds {
						last := 0
						for i, at := range pattern(chance) {
							d.clock.advance(time.Duration(at-last) * time.Millisecond)
							last = at
							if err := d.engine.Check(t.Context(), &rule.Request{User: fmt.Sprint("u", i%2)}, &v); err != nil {
								t.Fatal(err)
							}
							if all++; !v.Allowed {
								denied++
							}
						}
						d.clock.advance(time.Duration(1000-last) * time.Millisecond)
						d.tick(d.clock.now())
					}
					flush(t, d.Recorder)
					return d, denied, all
				}
				d, _, _ := play(written)
				got, err := d.Suggest(t.Context(), "api", noon, d.clock.now(), 0.001, 0.01, 0.1)
				if err != nil || len(got) != 1 || len(got[0].Targets) != 3 {
					t.Fatalf("%+v, %v", got, err)
				}
				rest := ""
				if i := strings.Index(written, ", algorithm"); i > 0 {
					rest = written[i:]
				}
				for _, target := range got[0].Targets {
					limit, burst, _ := strings.Cut(strings.TrimSuffix(target.Limit, " count_denied"), " burst ")
					applied := "limit: " + limit + rest
					if burst != "" {
						applied += ", burst: " + burst
					}
					if _, denied, all := play(applied); float64(denied) > target.Share*float64(all) {
						t.Errorf("%q for %v denies %d of %d", target.Limit, target.Share, denied, all)
					}
				}
			})
		}
	}
}

// No limit is suggested for a period that is longer than the data, however long ago was asked
// for, or whose rule is gone. That a limit denies too much is said at once.
func TestSuggestNeedsData(t *testing.T) {
	d := newDesk(t, "rules: [{id: api, key: user, algorithm: fixed_window, limits: [100/1m, 1000/1h, 100000/30d]}, {id: tight, key: user, algorithm: fixed_window, limit: 1/30d}]")
	targets := func() (all string) {
		t.Helper()
		flush(t, d.Recorder)
		for _, id := range []string{"api", "tight"} {
			got, err := d.Suggest(t.Context(), id, d.clock.now().Add(-7*24*time.Hour), d.clock.now().Add(time.Hour), 0.01)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range got {
				all += fmt.Sprintf("%v %v %v; ", s.Period, s.To.Sub(s.From) >= s.Period, s.Targets)
			}
		}
		return all
	}
	d.check(t, alice, 20)
	d.pass(30)
	const month, tight = "720h0m0s false []; ", "720h0m0s false [{0.01 1  true }]; "
	if got, want := targets(), "1m0s false []; 1h0m0s false []; "+month+tight; got != want {
		t.Errorf("after 30 s: %s", got)
	}
	d.pass(60)
	if got, want := targets(), "1m0s true [{0.01 1 1/1m false }]; 1h0m0s false []; "+month+tight; got != want {
		t.Errorf("after 90 s: %s", got)
	}
	if testkit.Race {
		return
	}
	d.pass(25 * 3600) // kept by the hour only
	if got, want := targets(), "1m0s true [{0.01 1 1/1m false }]; 1h0m0s true [{0.01 1 1/1h false }]; "+month+tight; got != want {
		t.Errorf("after a day: %s", got)
	}
	d.install(t, "rules: [{id: api, key: user, limit: 9/7s}]")
	if got, want := targets(), "1m0s true []; 1h0m0s true []; "+month+tight; got != want {
		t.Errorf("of another rule: %s", got)
	}
}

// Suggestions leave out clients with an override.
func TestSuggestLeavesOverridesOut(t *testing.T) {
	d := newDesk(t, "rules: [{id: api, key: user, algorithm: fixed_window, limit: 100/1h, overrides: {'user:big': 100000/1h}}]")
	d.check(t, rule.Request{User: "big"}, 500)
	d.check(t, alice, 10)
	d.pass(3900)
	flush(t, d.Recorder)
	all, err := d.Suggest(t.Context(), "api", noon, d.clock.now(), 0)
	if err != nil || len(all) != 1 || all[0].Requests != 10 || all[0].Targets[0].Units != 10 {
		t.Errorf("%+v, %v", all, err)
	}
}

// The past is told second by second, with those in which nothing happened.
func TestReplay(t *testing.T) {
	d := newDesk(t, someRules)
	d.check(t, alice, 3)
	d.pass(5)
	d.check(t, alice, 1)
	d.pass(5)
	flush(t, d.Recorder)
	var got []int64
	err := d.Replay(t.Context(), noon.Add(-time.Second), d.clock.now(), func(l Live) {
		if want := noon.Add(time.Duration(len(got)-1) * time.Second); !l.Time.Equal(want) {
			t.Errorf("%v, want %v", l.Time, want)
		}
		got = append(got, l.Frame.Requests.Total())
	})
	if fmt.Sprint(got) != "[0 3 0 0 0 0 1 0 0 0 0]" || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// How large an archive gets is what the documentation says: a hundred rules, all of them
// busy in every second.
func TestSize(t *testing.T) {
	text := "rules:"
	for i := range 100 {
		text += fmt.Sprintf("\n  - {id: some-rule-%02d, key: user, limit: %d/1h}", i, 1000+i)
	}
	d := newDesk(t, text)
	table, _ := d.engine.Rules()
	v := &engine.Verdict{Allowed: true}
	for _, c := range table.Rules() {
		v.Results = append(v.Results, engine.Result{Rule: c, Compiled: c.Limits("", "")[0], Asked: true, Decision: weir.Decision{Allowed: true, Limit: 1000}})
	}
	const seconds = 60
	for i := range seconds {
		for n := range 5 {
			for k := range v.Results {
				v.Results[k].Key = fmt.Sprintf("user:%d", n)
				v.Results[k].Remaining = int64(1000 - i*n)
				v.Results[k].Allowed = n > 0
			}
			d.Observe(&alice, v, time.Duration(1+i*n)*time.Microsecond)
			d.ObserveSpend(engine.Spend{Rule: "some-rule-01", Key: fmt.Sprint("user:", n), Model: "gpt-4o", Currency: "usd", Units: 1000})
		}
		d.pass(1)
	}
	flush(t, d.Recorder)
	perSlot := func(kind archive.Kind, level int) int {
		slots, err := d.memory.Read(t.Context(), kind, level, noon.Unix(), d.clock.now().Unix())
		if err != nil || len(slots) == 0 {
			t.Fatal(err)
		}
		n := 0
		for _, s := range slots {
			n += len(s.Frame.Append(nil))
		}
		return n / len(slots)
	}
	sum := 0.0
	for kind := range archive.Kinds {
		for level, l := range d.memory.Levels(kind) {
			bytes := perSlot(kind, level)
			all := float64(bytes) * float64(l.Keep/l.Step) / (1 << 20)
			sum += all
			t.Logf("%v, %d s: %d bytes a slot, %.1f MiB in all", kind, l.Step, bytes, all)
		}
	}
	t.Logf("%.1f MiB for a hundred rules", sum)
	if sum < 5 || sum > 40 {
		t.Errorf("an archive of a hundred busy rules has %.1f MiB", sum)
	}
}
