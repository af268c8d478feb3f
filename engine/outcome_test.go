package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// ruleObserver notes what it is told, and which rules are in force then.
type ruleObserver struct {
	observer
	engine *engine.Engine
}

func (o *ruleObserver) Install(_ *rule.Table, version int64) {
	_, now := o.engine.Rules()
	o.seen = append(o.seen, fmt.Sprintf("%d while %d", version, now))
}

func (o *ruleObserver) InstallDemands(rules []*rule.Entry) {
	o.seen = append(o.seen, fmt.Sprintf("%d demanded", len(rules)))
}

// Observers know the rules before the first verdict by them.
func TestRuleObserver(t *testing.T) {
	o := &ruleObserver{}
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{}), Observers: []engine.Observer{&observer{}, o}})
	if err != nil {
		t.Fatal(err)
	}
	o.engine = e
	for version := range int64(2) {
		e.Install(table(t, "rules: [{id: a, key: user, limit: 1/1h}]"), version+1)
	}
	e.InstallDemands([]*rule.Entry{nil, nil})
	if got := fmt.Sprint(o.seen); got != "[1 while 0 2 while 1 2 demanded]" {
		t.Error(got)
	}
}

// Every request has one outcome, and every rule says one thing of it.
func TestOutcomes(t *testing.T) {
	b := newBench(t, `
rules:
  - {id: both, key: user, algorithm: sliding_log, limits: [2/1h, 3/1d], match: {path: /both}}
  - {id: trial, key: user, algorithm: sliding_log, limit: 1/1h, mode: shadow, match: {path: /both}}
  - {id: open, key: user, limit: 9/1h, match: {path: /open}}
  - {id: closed, key: user, limit: 9/1h, on_failure: closed, match: {path: /closed}}
exempt: {user: [root]}
block: {user: [mallory]}
`, nil)
	for _, c := range []struct {
		user, path string
		want       engine.Outcome
		said       []engine.Outcome
	}{
		{"root", "/both", engine.OutcomeExempt, nil},
		{"mallory", "/both", engine.OutcomeBlocked, nil},
		{"alice", "/none", engine.OutcomeNoRule, nil},
		{"alice", "/both", engine.OutcomeAllowed, []engine.Outcome{engine.OutcomeAllowed, engine.OutcomeAllowed}},
		{"alice", "/both", engine.OutcomeShadowDenied, []engine.Outcome{engine.OutcomeAllowed, engine.OutcomeShadowDenied}},
		{"alice", "/both", engine.OutcomeDenied, []engine.Outcome{engine.OutcomeDenied, engine.OutcomeShadowDenied}},
		{"lost", "/open", engine.OutcomeDegradedAllowed, []engine.Outcome{engine.OutcomeDegradedAllowed}},
		{"lost", "/closed", engine.OutcomeDegradedDenied, []engine.Outcome{engine.OutcomeDegradedDenied}},
	} {
		b.store.lost.Store(c.user == "lost")
		v := b.check(t, rule.Request{User: c.user, Path: c.path})
		var said []engine.Outcome
		for i := 0; i < len(v.Results); {
			var o engine.Outcome
			o, i = v.Said(i)
			said = append(said, o)
		}
		if v.Outcome() != c.want || !slices.Equal(said, c.said) {
			t.Errorf("%s %s: %d, %d, want %d, %d", c.user, c.path, v.Outcome(), said, c.want, c.said)
		}
	}
}
