package plan

import (
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// Whatever the seed, weir accepts the rules, every algorithm is there, and no request is
// impossible.
func TestRules(t *testing.T) {
	for seed := range uint64(50) {
		rules := DrawRules(seeded(seed))
		set, problems := rule.Parse("chaos.yaml", []byte(rules.YAML()))
		if set == nil || len(set.Rules) != len(rules) {
			t.Fatalf("seed %d: %v\n%s", seed, problems, rules.YAML())
		}
		missing := map[weir.Algorithm]bool{}
		for _, a := range weir.Algorithms() {
			missing[a] = true
		}
		for i, r := range rules {
			delete(missing, r.Limits[0].Algorithm)
			for k, l := range r.Limits {
				c, err := l.Compile()
				if err != nil {
					t.Fatalf("seed %d: %s: %v", seed, r.ID, err)
				}
				if r.MaxCost > c.Capacity() {
					t.Errorf("seed %d: %s: no client can take %d of %v", seed, r.ID, r.MaxCost, c)
				}
				written := set.Rules[i].Quota.Rates[k]
				if written.N != l.N || written.Period != l.Period {
					t.Errorf("seed %d: %s is written as %v, want %v", seed, r.ID, written, l)
				}
			}
		}
		if len(missing) > 0 {
			t.Errorf("seed %d: there is no rule of %v", seed, missing)
		}
	}
}

// A request costs no more than each of its rules allows, and falls under one or two.
func TestTraffic(t *testing.T) {
	rules := DrawRules(seeded(1))
	traffic, r, pairs := NewTraffic(rules), seeded(2), 0
	for range 1000 {
		q := traffic.Draw(r)
		under := rules.Under(q.Path)
		if len(under) == 0 || len(under) > 2 {
			t.Fatalf("%s falls under %d rules", q.Path, len(under))
		}
		pairs += len(under) - 1
		for _, u := range under {
			if q.Cost < 1 || q.Cost > u.MaxCost {
				t.Errorf("%+v costs more than %s allows", q, u.ID)
			}
		}
	}
	if pairs == 0 {
		t.Error("no request falls under two rules")
	}
}

// The same seed draws the same plan, and another another.
func TestSeed(t *testing.T) {
	plan := func(seed uint64) any {
		r := seeded(seed)
		rules := DrawRules(r)
		s := NewSchedule(r, Cluster)
		var faults []Fault
		for range 50 {
			faults = append(faults, s.Next())
		}
		return []any{rules, faults, NewTraffic(rules).Draw(r)}
	}
	if !reflect.DeepEqual(plan(7), plan(7)) {
		t.Error("one seed draws two plans")
	}
	if reflect.DeepEqual(plan(7), plan(8)) {
		t.Error("two seeds draw one plan")
	}
}

// Each kind comes as often as its topology says before the deck is dealt again.
func TestSchedule(t *testing.T) {
	for _, topology := range Topologies() {
		s := NewSchedule(seeded(3), topology)
		for range 3 {
			left := map[Kind]int{}
			for _, k := range topology.Kinds() {
				left[k]++
			}
			for range topology.Kinds() {
				f := s.Next()
				if left[f.Kind]--; left[f.Kind] < 0 {
					t.Errorf("%s: %s comes too often", topology, f.Kind)
				}
				if f.After <= 0 || f.For <= 0 || f.Kind == Slow && f.Delay <= 0 {
					t.Errorf("%s: %+v takes no time", topology, f)
				}
			}
		}
	}
}

// Whatever the seed and the day, weir accepts the rules under which clients reserve, nothing
// is forgotten within a day, and no account reaches a limit.
func TestHolds(t *testing.T) {
	day := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for seed := range uint64(50) {
		r := seeded(seed)
		now := day.Add(time.Duration(r.Int64N(int64(5000 * 24 * time.Hour))))
		rules := DrawHoldRules(r, now)
		set, problems := rule.Parse("chaos.yaml", []byte(rules.YAML()))
		if set == nil || len(set.Rules) != len(rules) {
			t.Fatalf("seed %d: %v\n%s", seed, problems, rules.YAML())
		}
		for i, written := range set.Rules {
			period := written.Quota.Rates[0].Period
			if window := time.Duration(now.Unix()) * time.Second / period; window != time.Duration(now.Add(24*time.Hour).Unix())*time.Second/period {
				t.Errorf("seed %d: a window of %v ends on the day after %v", seed, period, now)
			}
			if release := written.OnExpiry == rule.Release; release != (rules[i].OnExpiry == "release") {
				t.Errorf("seed %d: %+v", seed, written)
			}
		}
		a, sum := DrawAccount(r, rules, int(seed)), int64(0)
		for _, h := range a.Holds {
			sum += h.Cost + h.Used
		}
		if sum > accountLimit || len(rules.Under(a.Path)) == 0 || netip.MustParseAddr(a.IP).Is6() {
			t.Errorf("seed %d: %+v takes %d units", seed, a, sum)
		}
	}
}

// All holds of an account with many are open at some instant, and end in time, or with it.
func TestManyHolds(t *testing.T) {
	r := seeded(1)
	a := DrawMany(r, DrawHoldRules(r, time.Unix(0, 0)), 1, 10_000)
	last, first, sum := time.Duration(0), time.Hour, int64(0)
	for _, h := range a.Holds {
		last, first, sum = max(last, h.After), min(first, h.After+min(h.Work, h.TTL)), sum+h.Cost+h.Used
		if h.End != Leave && h.TTL < h.Work+time.Second {
			t.Errorf("%+v", h)
		}
	}
	if len(a.Holds) != 10_000 || first < last+time.Second || sum > accountLimit {
		t.Errorf("%d holds of %d units; the last begins at %v, and the first ends at %v", len(a.Holds), sum, last, first)
	}
}
