package stats

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// Over all rules, a key counts by what became of its requests, each once; under a rule,
// by what the rule said.
func TestTopCountsRequests(t *testing.T) {
	d := newDesk(t, `
rules:
  - {id: by-ip, key: ip, limit: 1000/1h}
  - {id: by-user, key: user, limit: 5/1h}
  - {id: by-user-too, key: user, limit: 2000/1h}
  - {id: trial, key: ip, limit: 1/1h, mode: shadow}
`)
	d.check(t, rule.Request{IP: netip.MustParseAddr("203.0.113.7"), User: "alice"}, 100)
	flush(t, d.Recorder)
	for _, c := range []struct {
		rule  string
		by    By
		want  string
		total int64
	}{
		{"", ByAllowed, "[{ip:203.0.113.7 5 0} {user:alice 5 0}]", 5},
		{"", ByDenied, "[{ip:203.0.113.7 95 0} {user:alice 95 0}]", 95},
		{"", ByTotal, "[{ip:203.0.113.7 100 0} {user:alice 100 0}]", 100},
		{"by-ip", ByAllowed, "[{ip:203.0.113.7 100 0}]", 100},
		{"by-ip", ByDenied, "[]", 0},
		{"by-user", ByAllowed, "[{user:alice 5 0}]", 5},
		{"by-user", ByDenied, "[{user:alice 95 0}]", 95},
		{"trial", ByDenied, "[{ip:203.0.113.7 99 0}]", 99},
	} {
		top, err := d.Recorder.Top(t.Context(), TopQuery{Rule: c.rule, By: c.by})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(top.Keys); got != c.want || top.Total != c.total {
			t.Errorf("%q by %v: %s of %d, want %s of %d", c.rule, c.by, got, top.Total, c.want, c.total)
		}
	}
}

// What weir denied because the store was unavailable is no client's doing, and in no ranking. What a
// local limit denied is, and so is what another rule denied that the store could decide.
func TestTopOfOutage(t *testing.T) {
	d := newDesk(t, `
rules:
  - {id: closed, match: {path: /closed}, key: user, limit: 100/1h, on_failure: closed}
  - {id: local, match: {path: /local}, key: user, limit: 1/1h, on_failure: local}
  - {id: other, match: {path: /other}, key: ip, limit: 1/1h}
`)
	d.store.lost.Store(true)
	d.check(t, rule.Request{User: "alice", Path: "/closed"}, 30)
	d.check(t, rule.Request{User: "bob", Path: "/local"}, 5)
	table, _ := d.engine.Rules()
	d.Observe(&rule.Request{}, &engine.Verdict{Degraded: errLost, Results: []engine.Result{
		{Rule: table.Find("closed"), Key: "user:carol"}, {Rule: table.Find("local"), Key: "user:carol", Asked: true}, {Rule: table.Find("other"), Key: "ip:192.0.2.1", Asked: true, Decision: weir.Decision{Allowed: true}},
	}}, 0)
	flush(t, d.Recorder)
	for _, c := range []struct {
		rule string
		by   By
		want string
	}{
		{"", ByDenied, "[{user:bob 4 0} {ip:192.0.2.1 1 0} {user:carol 1 0}]"},
		{"", ByTotal, "[{user:bob 5 0} {ip:192.0.2.1 1 0} {user:carol 1 0}]"},
		{"closed", ByTotal, "[]"},
		{"local", ByDenied, "[{user:bob 4 0} {user:carol 1 0}]"},
		{archive.Others + "closed", ByDenied, "[]"},
		{archive.Others + "local", ByDenied, "[{ip:192.0.2.1 1 0}]"},
	} {
		top, err := d.Recorder.Top(t.Context(), TopQuery{Rule: c.rule, By: c.by})
		if err != nil || fmt.Sprint(top.Keys) != c.want {
			t.Errorf("%q by %v: %v, want %s; %v", c.rule, c.by, top.Keys, c.want, err)
		}
	}
}

// A request that counts as several clients is ranked under the denied one, so that a
// client cannot hide behind a temporary name.
func TestTopOfSeveral(t *testing.T) {
	d := newDesk(t, "rules: [{id: by-user, key: user, algorithm: fixed_window, limits: [5/1h, 50/1d]}]")
	for i := range 100 {
		d.check(t, rule.Request{User: fmt.Sprint("junk", i), OtherUsers: []string{"mallory"}}, 1)
	}
	flush(t, d.Recorder)
	for _, name := range []string{"", "by-user"} {
		top, err := d.Recorder.Top(t.Context(), TopQuery{Rule: name, By: ByDenied})
		if err != nil || fmt.Sprint(top.Keys) != "[{user:mallory 95 0}]" || top.Total != 95 {
			t.Errorf("%q: %v of %d, %v", name, top.Keys, top.Total, err)
		}
	}
}

// A client is whom the first rule with a key finds; without one, the user or the
// address of the request.
func TestClients(t *testing.T) {
	for name, rules := range map[string]string{
		"by keys":          "rules: [{id: everything, key: global, limit: 1000000/1s}, {id: by-ip, key: ip, limit: 1/1h}, {id: by-user, key: user, limit: 1/1h}]",
		"counted together": "rules: [{id: everything, key: global, limit: 900/1h}]",
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, rules)
			from := d.clock.now()
			for i := range 990 { // the last ninety are the first ones again
				who := i % 900
				req := rule.Request{IP: netip.AddrFrom4([4]byte{10, 0, byte(who >> 8), byte(who)})}
				if who%2 == 0 {
					req.User = fmt.Sprint("user-", who)
				}
				d.check(t, req, 1)
				d.tick(d.clock.now()) // so that every request is looked at
			}
			d.pass(2)
			var all, denied int64
			err := d.Replay(t.Context(), from, d.clock.now(), func(l Live) {
				all, denied = max(all, l.Frame.Clients.All.Count()), max(denied, l.Frame.Clients.Denied.Count())
			})
			if err != nil || all < 700 || all > 1100 || denied < 75 || denied > 105 {
				t.Errorf("%d clients, %d of them denied, want about 900 and 90; %v", all, denied, err)
			}
		})
	}
}
