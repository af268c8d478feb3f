package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// Each rule decides what happens without the store, and one that is closed denies
// whatever the others say.
func TestFailurePolicies(t *testing.T) {
	rules := func(policies ...string) string {
		text := "rules:\n"
		for i, p := range policies {
			text += fmt.Sprintf("  - {id: r%d, key: user, algorithm: sliding_log, limit: 2/1h, on_failure: %s}\n", i, p)
		}
		return text
	}
	for _, c := range []struct {
		policies []string
		allowed  int // of five
		reason   engine.Reason
	}{
		{[]string{"open"}, 5, engine.Limits},
		{[]string{"closed"}, 0, engine.Unavailable},
		{[]string{"local"}, 2, engine.Limits},
		{[]string{"open", "closed"}, 0, engine.Unavailable},
		{[]string{"local", "open"}, 2, engine.Limits},
		{[]string{"closed", "local"}, 0, engine.Unavailable},
	} {
		b := newBench(t, rules(c.policies...), nil)
		b.store.lost.Store(true)
		allowed := 0
		for range 5 {
			v := b.check(t, alice)
			if v.Degraded == nil || v.Reason != c.reason {
				t.Errorf("%v: %+v", c.policies, v)
			}
			if v.Allowed {
				allowed++
			}
		}
		if allowed != c.allowed {
			t.Errorf("%v: %d of 5 were allowed, want %d", c.policies, allowed, c.allowed)
		}
		// What closed denies was charged nowhere.
		b.store.lost.Store(false)
		if v := b.check(t, alice); !v.Allowed || v.Degraded != nil {
			t.Errorf("%v: when the store is back: %+v", c.policies, v)
		}
	}
}

// If this process had no time to ask the store, rules that fail open go on locally, from what was last
// seen; closed stays closed. However often that happens, what was seen counts once.
func TestBusyIsNoFailure(t *testing.T) {
	for _, c := range []struct {
		policy  string
		allowed int
	}{{"open", 4}, {"local", 4}, {"closed", 0}} {
		b := newBench(t, "rules: [{id: r, key: user, algorithm: fixed_window, limit: 10/1h, on_failure: "+c.policy+"}]", nil)
		for range 5 {
			b.check(t, alice)
		}
		allowed := 0
		for range 4 { // each time, one from the store, and two that find no time
			b.store.busy.Store(false)
			if v := b.check(t, alice); v.Degraded != nil || v.Results[0].Local {
				t.Errorf("%+v", v)
			}
			b.store.busy.Store(true)
			for range 2 {
				v := b.check(t, alice)
				if !errors.Is(v.Degraded, weir.ErrBusy) || v.Results[0].Local == (c.policy == "closed") {
					t.Errorf("%s: %+v", c.policy, v)
				}
				if v.Allowed {
					allowed++
				}
			}
		}
		if allowed != c.allowed {
			t.Errorf("%s: %d were allowed, want %d", c.policy, allowed, c.allowed)
		}
	}
}

// Of several instances, each goes on with its share.
func TestLocalShare(t *testing.T) {
	instances := 4
	b := newBench(t, `
rules:
  - {id: log, key: user, algorithm: sliding_log, limit: 10/1h, on_failure: local}
  - {id: bucket, key: ip, limit: 100/1h, burst: 10, on_failure: local}
`, func(o *engine.Options) { o.Instances = func() int { return instances } })
	b.store.lost.Store(true)
	count := func(req rule.Request) (n int) {
		for range 20 {
			if b.check(t, req).Allowed {
				n++
			}
		}
		return n
	}
	if n := count(rule.Request{User: "alice"}); n != 3 {
		t.Errorf("a quarter of 10 allowed %d, want 3", n)
	}
	if n := count(rule.Request{IP: alice.IP}); n != 3 {
		t.Errorf("a quarter of a burst of 10 allowed %d, want 3", n)
	}
	// Others are gone for good: this one's share grows, and what was used is used.
	instances = 2
	if n := count(rule.Request{User: "alice"}); n != 2 {
		t.Errorf("half of 10 less 3 allowed %d, want 2", n)
	}
}

// A client who had used most of its limit does not begin again when the store is unavailable,
// and does not pay twice in one outage.
func TestLocalBeginsWithWhatWasSeen(t *testing.T) {
	b := newBench(t, "rules: [{id: api, key: user, algorithm: fixed_window, limit: 10/1h, on_failure: local}]", nil)
	take := func(n int) (allowed int) {
		for range n {
			if b.check(t, alice).Allowed {
				allowed++
			}
		}
		return allowed
	}
	take(8)
	b.store.lost.Store(true)
	if n := take(10); n != 2 {
		t.Errorf("with 8 of 10 used, %d more were allowed, want 2", n)
	}
	// Back, and lost again a window later: all is forgotten.
	b.store.lost.Store(false)
	b.pass(time.Hour)
	take(1)
	b.store.lost.Store(true)
	if n := take(20); n != 10 {
		t.Errorf("in another window, %d were allowed, want 10", n)
	}
	// Another user was never seen.
	bob := rule.Request{User: "bob"}
	if v := b.check(t, bob); !v.Allowed || v.Speaker().Remaining != 9 {
		t.Errorf("bob: %+v", v)
	}
}

// raced is a store in which another request takes two units whenever it was peeked at.
type raced struct{ weir.Store }

func (r raced) Peek(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	dst, err := r.Store.Peek(ctx, dst, ops...)
	ops[0].Cost = 2
	return dst, errors.Join(err, testkit.Err(r.Store.Take(ctx, nil, ops[0])))
}

// What was seen counts as far as there is room for it.
func TestSeenDoesNotFit(t *testing.T) {
	b := newBench(t, "rules: [{id: api, key: user, algorithm: fixed_window, limit: 10/1h, on_failure: local}]", func(o *engine.Options) {
		o.Local = raced{memory.New(memory.Options{Clock: o.Clock})}
	})
	for range 9 {
		b.check(t, alice)
	}
	b.store.lost.Store(true)
	if v := b.check(t, alice); v.Allowed {
		t.Errorf("what was seen is forgotten: %+v", v)
	}
}

// A peek charges nothing, not even locally.
func TestPeekLocal(t *testing.T) {
	b := newBench(t, "rules: [{id: api, key: user, algorithm: sliding_log, limit: 2/1h, on_failure: local}]", nil)
	b.store.lost.Store(true)
	var v engine.Verdict
	for range 5 {
		if err := b.Peek(t.Context(), &alice, &v); err != nil || !v.Allowed || v.Degraded == nil || v.Speaker().Remaining != 2 {
			t.Fatalf("%+v, %v", v, err)
		}
	}
}

// A shadow rule that could not be asked is not reported as one that would deny.
func TestShadowWithoutTheStore(t *testing.T) {
	b := newBench(t, "rules: [{id: api, key: user, limit: 2/1h}, {id: new, key: user, limit: 1/1h, mode: shadow}]", nil)
	b.store.lost.Store(true)
	v := b.check(t, alice)
	if len(v.Results) != 2 || !v.Results[1].Shadow || v.Results[1].Asked || !v.Results[1].Allowed {
		t.Errorf("%+v", v.Results)
	}
}

// What was taken locally is given back locally.
func TestRefundLocal(t *testing.T) {
	b := newBench(t, "rules: [{id: api, key: user, algorithm: sliding_log, limit: 2/1h, on_failure: local}]", nil)
	b.store.lost.Store(true)
	for range 5 {
		v := b.check(t, alice)
		if !v.Allowed {
			t.Fatalf("%+v", v)
		}
		if err := b.Refund(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
}

// Each limit of a rule is remembered for itself: a client that has used most of both begins with
// what it had used of both.
func TestLocalSeveralLimits(t *testing.T) {
	b := newBench(t, "rules: [{id: api, key: user, algorithm: sliding_log, limits: [10/1m, 12/1h], on_failure: local}]", nil)
	for range 8 {
		b.check(t, alice)
	}
	b.store.lost.Store(true)
	n := 0
	for range 8 {
		if b.check(t, alice).Allowed {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d were allowed without the store, want the 2 that 10/1m had left", n)
	}
}
