package metrics

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/tally"
	"github.com/weirhq/weir/rule"
)

// A rule that stays goes on counting; one that is gone takes its series along.
func TestInstall(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: user, limit: 5/1h}, {id: b, key: user, limit: 6/1h}]", Options{})
	b.check(t, alice)
	b.install(t, "rules: [{id: c, key: user, limit: 7/1h}, {id: a, key: user, limit: 9/1h}]", 2)
	b.check(t, alice)
	want(t, b.Metrics, "weir_decisions_total",
		`{outcome="allowed",rule="a"} 2`, `{outcome="denied",rule="a"} 0`,
		`{outcome="allowed",rule="c"} 1`, `{outcome="denied",rule="c"} 0`)
	// What is switched off is gone, too.
	b.install(t, "rules: [{id: a, key: user, limit: 9/1h, mode: \"off\"}]", 3)
	want(t, b.Metrics, "weir_decisions_total")
	want(t, b.Metrics, "weir_rules_version", "3")
	// The number of a document is the same in every process, and there is none before a document is told.
	want(t, b.Metrics, "weir_rules_hash")
	for document, hash := range map[string]string{"rules: []": "235", "rules: [] ": "941", "": "58288"} {
		b.InstallSource([]byte(document))
		want(t, b.Metrics, "weir_rules_hash", hash)
	}
}

// A verdict of the rules before counts for the rule that has the id now, and one of
// rules that were never announced is not lost either.
func TestLateVerdicts(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: user, limit: 5/1h}, {id: b, key: user, limit: 6/1h}]", Options{})
	b.Install(tableOf(t, "rules: [{id: a, key: user, limit: 5/1h}]"), 2)
	b.check(t, alice) // the engine still has both
	want(t, b.Metrics, "weir_decisions_total", `{outcome="allowed",rule="a"} 1`, `{outcome="denied",rule="a"} 0`)
	var err error
	if b.engine, err = engine.New(engine.Options{Store: b.store, Observers: []engine.Observer{unannounced{b.Metrics}}}); err != nil {
		t.Fatal(err)
	}
	b.engine.Install(tableOf(t, "rules: [{id: a, key: user, limit: 5/1h}]"), 3)
	b.check(t, alice)
	want(t, b.Metrics, "weir_decisions_total",
		`{outcome="allowed",rule="(other)"} 1`, `{outcome="denied",rule="(other)"} 0`,
		`{outcome="allowed",rule="a"} 1`, `{outcome="denied",rule="a"} 0`)
}

// unannounced is an observer that is not told of rules.
type unannounced struct{ engine.Observer }

// However many rules there are, there are only so many series, for the first by id.
func TestMaxRules(t *testing.T) {
	rules := "rules:"
	for i := range 30 {
		rules += fmt.Sprintf("\n  - {id: r%02d, key: user, limit: %d/1h}", 29-i, 1000+i)
	}
	b := newBench(t, rules, Options{MaxRules: 2})
	if got := series(t, b.Metrics, "weir_decisions_total"); !strings.Contains(got, `{outcome="allowed",rule="(other)"} 0`) {
		t.Errorf("the others do not begin at 0:\n%s", got)
	}
	b.check(t, alice)
	want(t, b.Metrics, "weir_decisions_total",
		`{outcome="allowed",rule="(other)"} 28`, `{outcome="denied",rule="(other)"} 0`,
		`{outcome="allowed",rule="r00"} 1`, `{outcome="denied",rule="r00"} 0`,
		`{outcome="allowed",rule="r01"} 1`, `{outcome="denied",rule="r01"} 0`)
	want(t, b.Metrics, "weir_rules", `{mode="enforce"} 30`, `{mode="off"} 0`, `{mode="shadow"} 0
{mode="soft"} 0`)
}

// Rules that come with demands have series by their ids, several with one id the same, in
// the room that the rules of the document leave. They count on when either is replaced.
func TestDemands(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: user, limit: 5/1h}]", Options{MaxRules: 3})
	demands := func() (all []*rule.Entry) {
		for _, id := range []string{"envoy:edge.y", "envoy:edge.x", "envoy:edge.y", "envoy:edge.z"} {
			all = append(all, &rule.Entry{Rule: &rule.Rule{ID: id}})
		}
		return all
	}
	for range 2 {
		rules := demands()
		b.InstallDemands(rules)
		b.install(t, "rules: [{id: a, key: user, limit: 5/1h}]", 2)
		for _, c := range rules {
			b.Observe(&alice, &engine.Verdict{Results: []engine.Result{{Rule: c, Asked: true}}}, 1)
		}
	}
	want(t, b.Metrics, "weir_decisions_total",
		`{outcome="allowed",rule="(other)"} 0`, `{outcome="denied",rule="(other)"} 2`,
		`{outcome="allowed",rule="a"} 0`, `{outcome="denied",rule="a"} 0`,
		`{outcome="allowed",rule="envoy:edge.x"} 0`, `{outcome="denied",rule="envoy:edge.x"} 2`,
		`{outcome="allowed",rule="envoy:edge.y"} 0`, `{outcome="denied",rule="envoy:edge.y"} 4`)
	want(t, b.Metrics, "weir_rules", `{mode="enforce"} 1`, `{mode="off"} 0`, `{mode="shadow"} 0
{mode="soft"} 0`)
}

// A set that was made in Go may have ids that no rule file can have. They neither
// break a scrape nor take the place of the others.
func TestStrangeIDs(t *testing.T) {
	set := &rule.Set{}
	for i, id := range []string{"(other)", "\xff\xfe", "fine", "a\"b\n"} {
		set.Rules = append(set.Rules, rule.Rule{
			ID: id, Key: []rule.Source{{Kind: rule.User}}, Quota: rule.Quota{Rates: []rule.Rate{{N: int64(10 + i), Period: 3600e9}}},
		})
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err) // if it denies them, printable is not needed any more
	}
	b := newBench(t, several, Options{})
	b.Install(table, 2)
	b.engine.Install(table, 2)
	b.check(t, alice)
	got := series(t, b.Metrics, "weir_decisions_total")
	for _, line := range []string{`{outcome="allowed",rule="(other)"} 2`, `{outcome="allowed",rule="fine"} 1`} {
		if !strings.Contains(got, line) {
			t.Errorf("%s is missing in\n%s", line, got)
		}
	}
}

// Rules that change under load lose no request, and no decision of a rule that stays.
func TestInstallUnderLoad(t *testing.T) {
	const goroutines, each = 4, 2000
	texts := []string{
		"rules: [{id: stays, key: user, limit: 5/1h}]",
		"rules: [{id: comes, key: user, limit: 6/1h}, {id: stays, key: user, limit: 5/1h}]",
	}
	b := newBench(t, texts[0], Options{})
	tables := []*rule.Table{tableOf(t, texts[0]), tableOf(t, texts[1])}
	ctx, stop := context.WithCancel(t.Context())
	var installer, callers sync.WaitGroup
	installer.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			b.Install(tables[i%2], int64(i))
			b.engine.Install(tables[i%2], int64(i))
			scrape(t, b.Metrics)
		}
	})
	for range goroutines {
		callers.Go(func() {
			var v engine.Verdict
			for range each {
				if err := b.engine.Check(ctx, &rule.Request{User: "alice"}, &v); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	stop()
	installer.Wait()
	total, stays, others := uint64(0), uint64(0), uint64(0)
	for i := range b.stripes {
		for p := range b.stripes[i].requests {
			for o := range engine.Outcomes {
				total += b.stripes[i].requests[p][o].Load()
			}
		}
	}
	for _, l := range b.rules.Load().All {
		for s := range sayings {
			if l.label == "stays" {
				stays += l.said(s)
			}
			others += b.others.said(s)
		}
	}
	// A caller that was held up through two changes may find its rule under other.
	if total != goroutines*each || stays+others < goroutines*each {
		t.Errorf("%d requests, %d decisions of the rule that stays and %d of others, want %d", total, stays, others, goroutines*each)
	}
}

// Whatever the verdicts are, requests add up to verdicts, and each rule's sayings to
// the requests to which it applied.
func TestSums(t *testing.T) {
	table := tableOf(t, "rules: [{id: a, key: user, limit: 5/1h}, {id: b, key: user, limit: 6/1h}, {id: c, key: user, limit: 7/1h, mode: shadow}]")
	rapid.Check(t, func(t *rapid.T) {
		m, err := New(Options{MaxRules: rapid.IntRange(1, 3).Draw(t, "max")})
		if err != nil {
			t.Fatal(err)
		}
		m.Install(table, 1)
		applied := map[string]uint64{}
		n := rapid.IntRange(0, 30).Draw(t, "verdicts")
		for range n {
			v := engine.Verdict{Allowed: rapid.Bool().Draw(t, "allowed"), Reason: engine.Reason(rapid.IntRange(0, 3).Draw(t, "reason"))}
			if rapid.Bool().Draw(t, "degraded") {
				v.Degraded = weir.ErrUnavailable
			}
			for i, c := range table.Rules() {
				if limits := rapid.IntRange(0, 3).Draw(t, "limits"); limits > 0 {
					for range limits {
						v.Results = append(v.Results, engine.Result{
							Rule: c, Shadow: i == 2, Asked: v.Degraded == nil, Decision: weir.Decision{Allowed: rapid.Bool().Draw(t, "says")},
						})
					}
					applied[c.ID]++
				}
			}
			m.Observe(&alice, &v, 1)
		}
		requests := uint64(0)
		for i := range m.stripes {
			for p := range m.stripes[i].requests {
				for o := range engine.Outcomes {
					requests += m.stripes[i].requests[p][o].Load()
				}
			}
		}
		if requests != uint64(n) {
			t.Errorf("%d verdicts are %d requests", n, requests)
		}
		all, said := uint64(0), uint64(0)
		for _, l := range m.rules.Load().All {
			sum := uint64(0)
			for s := range sayings {
				sum += l.said(s)
			}
			if l.label != tally.Other && sum != applied[l.label] {
				t.Errorf("%s applied %d times and said %d things", l.label, applied[l.label], sum)
			}
			said += sum
		}
		for _, n := range applied {
			all += n
		}
		if all != said {
			t.Errorf("rules applied %d times and said %d things", all, said)
		}
	})
}
