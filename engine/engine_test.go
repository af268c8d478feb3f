package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile" // reads YAML
	"github.com/weirhq/weir/store/memory"
)

// start is where the clock of these tests begins.
const start = weir.Micros(1_767_225_600_000_000)

// bench is an engine with a clock and a store that can be lost.
type bench struct {
	*engine.Engine
	now   atomic.Int64
	store *losable
}

// losable is a store that can be lost.
type losable struct {
	weir.Store
	lost  atomic.Bool
	busy  atomic.Bool // and not lost: this process had no time
	calls atomic.Int64
	slow  time.Duration // how long Take takes
}

var errLost = errors.New("the store is unavailable")

func (l *losable) err() error {
	switch {
	case l.lost.Load():
		return errLost
	case l.busy.Load():
		return fmt.Errorf("not sent: %w", weir.ErrBusy)
	}
	return nil
}

func (l *losable) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	l.calls.Add(1)
	if l.slow > 0 {
		time.Sleep(l.slow)
	}
	if err := l.err(); err != nil {
		return dst, err
	}
	return l.Store.Take(ctx, dst, ops...)
}

func (l *losable) Peek(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	l.calls.Add(1)
	if err := l.err(); err != nil {
		return dst, err
	}
	return l.Store.Peek(ctx, dst, ops...)
}

func newBench(t *testing.T, rules string, change func(*engine.Options)) *bench {
	t.Helper()
	b := &bench{}
	b.now.Store(int64(start))
	clock := func() weir.Micros { return weir.Micros(b.now.Load()) }
	b.store = &losable{Store: memory.New(memory.Options{Clock: clock})}
	o := engine.Options{Store: b.store, Clock: clock}
	if change != nil {
		change(&o)
	}
	var err error
	if b.Engine, err = engine.New(o); err != nil {
		t.Fatal(err)
	}
	b.Install(table(t, rules), 1)
	return b
}

func table(t *testing.T, rules string) *rule.Table {
	t.Helper()
	set, problems := rule.Parse("test.yaml", []byte(rules))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func (b *bench) pass(d time.Duration) { b.now.Add(d.Microseconds()) }

func (b *bench) check(t *testing.T, req rule.Request) *engine.Verdict {
	t.Helper()
	v := new(engine.Verdict)
	if err := b.Check(t.Context(), &req, v); err != nil {
		t.Fatal(err)
	}
	return v
}

var alice = rule.Request{User: "alice", IP: netip.MustParseAddr("203.0.113.7"), Method: "GET", Path: "/api/x"}

const twoRules = `
rules:
  - {id: by-ip, key: ip, algorithm: sliding_log, limit: 3/1m, deny: {code: 10007}}
  - {id: by-user, key: user, algorithm: sliding_log, limit: 5/1h, deny: {code: 10008}}
`

// What one rule denies costs nothing under the others.
func TestAllOrNone(t *testing.T) {
	b := newBench(t, twoRules, nil)
	for range 3 {
		if v := b.check(t, alice); !v.Allowed || v.Speaker().Rule.ID != "by-ip" {
			t.Fatalf("%+v", v)
		}
	}
	for range 10 {
		if v := b.check(t, alice); v.Allowed || v.Speaker().Rule.ID != "by-ip" || v.Speaker().RetryAfter != time.Minute {
			t.Fatalf("%+v", v)
		}
	}
	b.pass(time.Minute)
	for i := range 3 {
		if v := b.check(t, alice); v.Allowed != (i < 2) {
			t.Fatalf("request %d after a minute: %+v", i+1, v)
		}
	}
	if v := b.check(t, alice); v.Speaker().Rule.ID != "by-user" || v.Speaker().Rule.Deny.Code != 10008 {
		t.Errorf("%+v speaks", v.Speaker())
	}
}

// A denial names another limit only if the client waits for one that it does not call the same.
func TestDenialNamesAnotherLimit(t *testing.T) {
	for _, c := range []struct{ rules, want string }{
		{`rules: [{id: both, key: user, algorithm: fixed_window, limits: [1/1m, 1/1d]}]`, "The limit both is used up; try again in 86400 s."},
		{`rules: [{id: one, key: user, algorithm: fixed_window, limit: 1/1m}, {id: other, key: user, algorithm: fixed_window, limit: 1/1d}]`,
			"The limit one is used up; because of another limit, try again in 86400 s."},
		{"levels: [org, user]\nrules: [{id: api, key: levels, algorithm: fixed_window, levels: {org: 1/1m, user: 1/1d}}]",
			"The limit api of the level org is used up; because of another limit, try again in 86400 s."},
		{"levels: [org, user]\nrules: [{id: api, key: levels, algorithm: fixed_window, levels: {org: 1/1d, user: 1/1m}}]",
			"The limit api of the level org is used up; try again in 86400 s."},
	} {
		b := newBench(t, c.rules, nil)
		request := rule.Request{User: "ann", Attributes: map[string]string{"org": "acme"}}
		b.check(t, request)
		if d := engine.Describe(b.check(t, request)); d.Detail != c.want {
			t.Errorf("%s: %s", c.rules, d.Detail)
		}
	}
}

// Of several that deny, the first in the document speaks, and the client is told the
// longest wait of all; of several that allow, the one with the least left speaks.
func TestSpeaker(t *testing.T) {
	b := newBench(t, `
rules:
  - {id: minute, key: user, algorithm: fixed_window, limit: 1/1m}
  - {id: hour, key: user, algorithm: fixed_window, limit: 2/1h}
  - {id: day, key: user, algorithm: fixed_window, limit: 2/1d}
`, nil)
	if v := b.check(t, alice); v.Speaker().Rule.ID != "minute" || v.Speaker().Remaining != 0 {
		t.Errorf("%+v speaks", v.Speaker())
	}
	b.pass(time.Minute)
	b.check(t, alice)
	if v := b.check(t, alice); v.Speaker().Rule.ID != "minute" || v.RetryAfter != v.Results[2].RetryAfter || v.RetryAfter <= time.Hour {
		t.Errorf("%+v speaks, to wait %v", v.Speaker(), v.RetryAfter)
	}
	if d := engine.Describe(b.check(t, alice)); d.Detail != "The limit minute is used up; because of another limit, try again in 86340 s." {
		t.Error(d.Detail)
	}
	b.pass(time.Minute)
	if v := b.check(t, alice); v.Speaker().Rule.ID != "hour" || v.RetryAfter != v.Results[2].RetryAfter {
		t.Errorf("%+v speaks, to wait %v", v.Speaker(), v.RetryAfter)
	}
	big := alice
	big.Cost = 2
	if v := b.check(t, big); v.Speaker().Rule.ID != "minute" || v.RetryAfter != weir.Never {
		t.Errorf("%+v speaks, to wait %v", v.Speaker(), v.RetryAfter)
	}
	b.pass(24 * time.Hour)
	if v := b.check(t, alice); !v.Allowed || v.RetryAfter != 0 {
		t.Errorf("%+v, to wait %v", v, v.RetryAfter)
	}
	if v := b.check(t, rule.Request{IP: alice.IP}); !v.Allowed || v.Speaker() != nil || len(v.Results) != 0 {
		t.Errorf("no rule applies, but %+v", v)
	}
}

func TestTiersAndOverrides(t *testing.T) {
	b := newBench(t, `
rules:
  - id: api
    key: user
    algorithm: sliding_log
    limit: 1/1h
    tiers: {pro: 2/1h, enterprise: unlimited}
    overrides: {"user:alice": 3/1h}
`, nil)
	for _, c := range []struct {
		user, tier string
		n          int
	}{{"bob", "", 1}, {"bob2", "nonsense", 1}, {"carol", "pro", 2}, {"dave", "enterprise", 20}, {"alice", "", 3}} {
		allowed := 0
		for range 20 {
			if b.check(t, rule.Request{User: c.user, Tier: c.tier}).Allowed {
				allowed++
			}
		}
		if allowed != c.n {
			t.Errorf("%s of tier %q was allowed %d times, want %d", c.user, c.tier, allowed, c.n)
		}
	}
}

func TestExemptAndBlocked(t *testing.T) {
	b := newBench(t, `
rules: [{id: all, key: global, limit: 1/1h}]
exempt: {user: [healthcheck]}
block: {ip: [203.0.113.0/24]}
`, nil)
	for range 3 {
		if v := b.check(t, rule.Request{User: "healthcheck", IP: alice.IP}); !v.Allowed || v.Reason != engine.Exempt {
			t.Errorf("exempt: %+v", v)
		}
		if v := b.check(t, alice); v.Allowed || v.Reason != engine.Blocked {
			t.Errorf("blocked: %+v", v)
		}
	}
	if v := b.check(t, rule.Request{User: "bob"}); !v.Allowed {
		t.Errorf("those have used something: %+v", v)
	}
}

// A shadow rule is charged and reported, and has no say. What it would deny, or
// what others deny, costs it nothing.
func TestShadow(t *testing.T) {
	b := newBench(t, `
rules:
  - {id: real, key: user, algorithm: sliding_log, limit: 4/1h}
  - {id: tight, key: user, algorithm: sliding_log, limit: 2/1m, mode: shadow}
  - {id: wide, key: user, algorithm: sliding_log, limit: 9/1d, mode: shadow}
  - {id: gone, key: user, limit: 1/1h, mode: off}
`, nil)
	type answer struct {
		allowed     bool
		tight, wide int64
	}
	for i, want := range []answer{{true, 1, 8}, {true, 0, 7}, {true, 0, 6}, {true, 0, 5}, {false, 0, 5}, {false, 0, 5}} {
		v := b.check(t, alice)
		if len(v.Results) != 3 || !v.Results[1].Shadow || v.Results[0].Shadow {
			t.Fatalf("%+v", v.Results)
		}
		if got := (answer{v.Allowed, v.Results[1].Remaining, v.Results[2].Remaining}); got != want {
			t.Errorf("request %d: %+v, want %+v", i+1, got, want)
		}
		if denied := i >= 2; v.Results[1].Allowed == denied {
			t.Errorf("request %d: the shadow says %v", i+1, v.Results[1].Allowed)
		}
	}
}

func TestPeekChargesNothing(t *testing.T) {
	b := newBench(t, twoRules, nil)
	var v engine.Verdict
	for range 5 {
		if err := b.Peek(t.Context(), &alice, &v); err != nil || !v.Allowed || v.Speaker().Remaining != 3 {
			t.Fatalf("%+v, %v", v, err)
		}
	}
}

// Other rules see the usage that there is, and leave no trace.
func TestPeekWith(t *testing.T) {
	b := newBench(t, twoRules, nil)
	set, problems := rule.Parse("", []byte(strings.ReplaceAll(twoRules, "3/", "9/")))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.check(t, alice)
	_, version := b.Rules()
	var v engine.Verdict
	for range 5 {
		if err := b.PeekWith(t.Context(), table, &alice, &v); err != nil || !v.Allowed || v.Results[0].Remaining != 8 || v.Version != version {
			t.Fatalf("%+v, %v", v, err)
		}
		if err := b.Peek(t.Context(), &alice, &v); err != nil || v.Speaker().Remaining != 2 {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	b.InstallOverrides([]engine.Override{{Rule: "by-ip", Key: "ip:" + alice.IP.String(), Quota: rule.Quota{Rates: []rule.Rate{{N: 20, Period: time.Minute}}}, Ends: time.Now().AddDate(100, 0, 0)}})
	if err := b.PeekWith(t.Context(), table, &alice, &v); err != nil || v.Results[0].Limit != 20 || v.Results[0].Remaining != 19 {
		t.Errorf("with an override: %+v, %v", v.Results, err)
	}
}

func TestRefund(t *testing.T) {
	b := newBench(t, twoRules, nil)
	for range 20 {
		v := b.check(t, alice)
		if !v.Allowed {
			t.Fatalf("%+v", v)
		}
		if err := b.Refund(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStandingAndReset(t *testing.T) {
	b := newBench(t, `
rules:
  - {id: post, key: user, match: {method: POST}, algorithm: sliding_log, limits: [3/1m, 20/1h], tiers: {pro: 30/1m}}
  - {id: tenant, key: "header:X-Tenant", limit: 3/1m}
  - {id: address, key: ip, limit: 3/1m}
  - {id: off, key: user, limit: 3/1m, mode: off}
`, nil)
	post := alice
	post.Method = "POST"
	b.check(t, post)
	b.check(t, post)
	var v engine.Verdict
	standing := func(id, key, tier, want string) {
		t.Helper()
		got := ""
		if _, err := b.Standing(t.Context(), id, key, tier, &v); err != nil {
			got = err.Error()
		}
		for _, r := range v.Results {
			got += fmt.Sprintf("%s %s %d of %d; ", r.Rule.ID, r.Key, r.Remaining, r.Limit)
		}
		if got != want {
			t.Errorf("Standing(%q, %q, %q)\n got %s\nwant %s", id, key, tier, got, want)
		}
	}
	standing("", "user:alice", "", "post user:alice 1 of 3; post user:alice 18 of 20; ")
	standing("post", "user:alice", "pro", "post user:alice 28 of 30; ")
	standing("post", "user:bob", "", "post user:bob 3 of 3; post user:bob 20 of 20; ")
	standing("", "ip:2001:db8::1", "", "address ip:2001:db8::/64 3 of 3; ")
	standing("nonsense", "user:alice", "", `engine: there is no rule "nonsense"`)
	standing("post", "ip:192.0.2.1", "", `engine: the key under the rule "post": this is not part of the rule's key; write it as "user:…"`)
	standing("", "nobody", "", `engine: the key: no rule counts by such keys; write it as in "user:alice" or "ip:203.0.113.7"`)

	rules, err := b.Reset(t.Context(), "", "user:alice")
	if err != nil || !slices.Equal(rules, []string{"post", "off"}) {
		t.Fatalf("Reset = %v, %v", rules, err)
	}
	standing("", "user:alice", "", "post user:alice 3 of 3; post user:alice 20 of 20; ")
	var none *engine.NoRuleError
	if _, err := b.Reset(t.Context(), "nonsense", "user:alice"); !errors.As(err, &none) {
		t.Errorf("Reset under no rule = %v", err)
	}
}

// A request that makes no sense is an error, store or no store.
func TestBadRequests(t *testing.T) {
	b := newBench(t, twoRules, nil)
	var invalid *weir.InvalidError
	req := alice
	req.Cost = -1
	for _, lost := range []bool{false, true} {
		b.store.lost.Store(lost)
		var v engine.Verdict
		if err := b.Check(t.Context(), &req, &v); !errors.As(err, &invalid) {
			t.Errorf("a negative cost, store lost %v: %v", lost, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Check(ctx, &alice, &v); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled context: %v", err)
		}
	}
}

// Observers get all verdicts, except those of peeks.
type observer struct {
	mu   sync.Mutex
	seen []string
}

func (o *observer) Observe(req *rule.Request, v *engine.Verdict, took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, fmt.Sprint(req.User, v.Allowed, v.Reason, v.Degraded != nil, took))
}

func TestObserver(t *testing.T) { synctest.Test(t, testObserver) }

func testObserver(t *testing.T) {
	o := &observer{}
	b := newBench(t, "rules: [{id: a, key: user, algorithm: sliding_log, limit: 1/1h}]\nblock: {user: [mallory]}", func(p *engine.Options) { p.Observers = []engine.Observer{o} })
	b.store.slow = 3 * time.Millisecond
	var v engine.Verdict
	for _, user := range []string{"alice", "alice", "mallory"} {
		if err := b.Peek(t.Context(), &rule.Request{User: user}, &v); err != nil {
			t.Fatal(err)
		}
		b.check(t, rule.Request{User: user})
	}
	b.store.lost.Store(true)
	b.check(t, rule.Request{User: "alice"})
	want := "[alicetrue limits false 3ms alicefalse limits false 3ms malloryfalse blocked false 0s alicetrue limits true 3ms]"
	if got := fmt.Sprint(o.seen); got != want {
		t.Errorf("saw %s, want %s", got, want)
	}
}
