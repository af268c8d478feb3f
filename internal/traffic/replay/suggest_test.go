package replay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// compileLimit makes a table with one rule, for a limit of each user.
func compileLimit(t rapid.TB, l weir.Limit) *rule.Table {
	r := rule.Rule{
		ID: "rule", Key: []rule.Source{{Kind: rule.User}}, Algorithm: l.Algorithm, Buckets: l.Buckets, Shape: l.Shape, CountDenied: l.CountDenied,
		Quota: rule.Quota{Rates: []rule.Rate{{N: l.N, Period: l.Period}}, Burst: l.Burst},
	}
	table, err := rule.Compile(&rule.Set{Rules: []rule.Rule{r}}, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// drawLog draws the requests of some users, some of whom ask for much.
func drawLog(t *rapid.T) string {
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	var log strings.Builder
	at := int64(1_794_700_800_000_000)
	for range rapid.IntRange(50, 600).Draw(t, "lines") {
		at += random.Int64N(1+random.Int64N(400_000)) / 100_000 * 100_000
		user := random.IntN(1 + random.IntN(12))
		fmt.Fprintf(&log, "{\"time\":%d.%06d,\"user\":\"u%d\"}\n", at/1_000_000, at%1_000_000, user)
	}
	return log.String()
}

// A suggested limit denies what the suggestion says when it is tried, no more than
// the share, and the next smaller one denies more.
func TestSuggestionsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		algorithm := rapid.SampledFrom(weir.Algorithms()).Draw(t, "algorithm")
		l := weir.Limit{Algorithm: algorithm, N: rapid.Int64Range(1, 30).Draw(t, "n"), Period: 5_000_000_000}
		switch algorithm {
		case weir.TokenBucket, weir.LeakyBucket:
			l.Burst = rapid.Int64Range(0, 30).Draw(t, "burst")
			l.Shape = algorithm == weir.LeakyBucket && rapid.Bool().Draw(t, "shape")
		default:
			l.CountDenied = rapid.Bool().Draw(t, "count_denied")
		}
		log := drawLog(t)
		o := Options{Shares: []float64{0, 0.01, 0.2}}
		try := func(l weir.Limit) *Report {
			o.Table = compileLimit(t, l)
			r, err := Run(context.Background(), o, NewLog("log", strings.NewReader(log)))
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		first := try(l)
		s := first.Rules[0].Suggestions[0]
		if s.Denied != first.Denied || s.Requests != first.Requests {
			t.Fatalf("%+v, but %d of %d were denied", s, first.Denied, first.Requests)
		}
		for _, f := range s.For {
			suggested, err := weir.ParseLimit(f.Limit)
			if err != nil {
				t.Fatal(err)
			}
			allowed := int64(f.Share * float64(s.Requests))
			if r := try(suggested); r.Denied != f.Denied || r.Denied > allowed {
				t.Fatalf("%+v, but %d of %d were denied", f, r.Denied, r.Requests)
			}
			if suggested.N == 1 {
				continue
			}
			smaller := suggested
			smaller.N--
			if l.Burst > 0 {
				smaller.Burst = max(1, int64(float64(l.Burst)*float64(smaller.N)/float64(l.N)+0.5))
			}
			if r := try(smaller); r.Denied <= allowed {
				t.Fatalf("%s is suggested, but %s denies %d, too, of %d that are allowed", f.Limit, smaller, r.Denied, allowed)
			}
		}
	})
}

// Costs are counted in units.
func TestSuggestionsWithCost(t *testing.T) {
	log := strings.Repeat(line(0, "192.0.2.1"), 7)
	r := run(t, Options{Shares: []float64{0}, Table: compile(t, "rules: [{id: a, key: ip, algorithm: fixed_window, limit: 10/10s, cost: 3}]")}, log)
	s := r.Rules[0].Suggestions[0]
	if r.Denied != 4 || s.Denied != 4 || s.For[0].Limit != "fixed_window 21/10s" {
		t.Errorf("%+v", s)
	}
}

// Only the rule's own limit is suggested from those to whom it applies.
func TestSuggestionsLeaveOutTiers(t *testing.T) {
	table := compile(t, "rules: [{id: a, key: user, limit: 1/1m, tiers: {pro: 100/1m, free: unlimited}, overrides: {'user:bob': 50/1m}}]")
	var log strings.Builder
	for i, who := range []string{`"user":"alice"`, `"user":"alice"`, `"user":"bob"`, `"user":"carol","tier":"pro"`, `"user":"dan","tier":"free"`} {
		fmt.Fprintf(&log, "{\"time\":%d,%s}\n", 1_794_700_800+i, who)
	}
	r := run(t, Options{Table: table}, log.String())
	if s := r.Rules[0].Suggestions[0]; r.Requests != 5 || r.Free != 1 || r.Rules[0].Applied != 4 || s.Requests != 2 || s.Denied != 1 {
		t.Errorf("%+v", r.Rules[0])
	}
}

// A limit that no algorithm can keep is not suggested.
func TestNothingToSuggest(t *testing.T) {
	d := newDemand(demandKey{limit: weir.MustCompile("sliding_log 5/1m")}, 1, 100)
	for range weir.MaxLogUnits + 1000 {
		d.addArrival("client", 1_794_700_800_000_000)
	}
	s := d.suggest([]float64{0, 0.01})
	if s.For[0].Limit != "" || s.For[1].Limit == "" {
		t.Errorf("%+v", s)
	}
}

// What is remembered has a bound, and the busiest are remembered exactly.
func TestDemandIsBounded(t *testing.T) {
	const room = 2000
	d := newDemand(demandKey{limit: weir.MustCompile("sliding_log 20/1s")}, 1, room)
	exact := newDemand(demandKey{limit: weir.MustCompile("sliding_log 20/1s")}, 1, 1<<22)
	random := rand.New(rand.NewPCG(1, 2))
	at := int64(1_794_700_800_000_000)
	for i := range 24_000 {
		at += 1 + random.Int64N(20_000)
		key := fmt.Sprintf("rare%d", i/3)
		if i%20 == 0 {
			key = "busy"
		}
		d.addArrival(key, at)
		exact.addArrival(key, at)
		if d.used > room {
			t.Fatalf("%d arrivals of %d clients", d.used, len(d.clients))
		}
	}
	arrivals := 0
	for _, c := range d.clients {
		arrivals += len(c.arrivals)
	}
	if arrivals != d.used {
		t.Errorf("clients have %d arrivals, and %d are counted", arrivals, d.used)
	}
	if d.until != 0 || d.forgot == 0 || d.forgot > 4 || d.requests != 24_000 || d.clients["busy"].requests != 1200 {
		t.Errorf("until %d, forgot %d, %d requests, %+v", d.until, d.forgot, d.requests, d.clients["busy"])
	}
	for n := d.forgot; n < 10; n++ {
		if got, want := d.denied(d.with(n)), exact.denied(exact.with(n)); got != want || n == d.forgot && want == 0 {
			t.Errorf("%d: %d are denied, want %d", n, got, want)
		}
	}
}

// When all are equally busy, the beginning of the log has to do.
func TestDemandEnds(t *testing.T) {
	d := newDemand(demandKey{limit: weir.MustCompile("sliding_log 20/1s")}, 1, 128)
	for i := range int64(1000) {
		d.addArrival(fmt.Sprint(i%4), 1_794_700_800_000_000+i)
	}
	if d.until != 1_794_700_800_000_128 || d.requests != 128 || d.used != 128 {
		t.Errorf("until %d, %d requests, %d used", d.until, d.requests, d.used)
	}
	if s := d.suggest([]float64{0}); s.Until == nil || s.Requests != 128 || s.For[0].Limit != "sliding_log 32/1s" {
		t.Errorf("%+v", s)
	}
}
