package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/queue"
	"github.com/weirhq/weir/rule"
)

// Where checks may take long, other calls may, too.
func TestSlowStore(t *testing.T) {
	proxy := testredis.NewProxy(t, testredis.Start(t))
	o, _ := prepared(t, Options{
		Store: "redis://" + proxy.Addr + "?timeout=1m&dial_timeout=1m", Rules: InRedis,
		Queues: map[string]queue.Settings{"mail": {N: 1, Period: time.Hour}},
	}, "")
	url := urlOf(started(t, o))
	proxy.Latency(1100 * time.Millisecond) // longer than any of them waits by default
	for _, call := range []struct {
		method, path, body string
		want               int
	}{
		{"PUT", "/v1/rules", perUser, http.StatusOK},
		{"POST", "/v1/overrides", `{"rule": "api", "key": "user:alice", "limit": "5/1h", "for": "1h", "reason": "test"}`, http.StatusCreated},
		{"POST", "/v1/counters/add", `{"add": [{"name": "views"}]}`, http.StatusOK},
		{"POST", "/v1/queues/mail/push", `{"payload": "hello"}`, http.StatusAccepted},
	} {
		if status, body := ask(t, nil, call.method, url+call.path, call.body, "If-Match", "*"); status != call.want {
			t.Errorf("%s %s: %d %s", call.method, call.path, status, body)
		}
	}
}

// An operator reads in the log when the store became unavailable, and when it was available
// again, in turns, although nobody checks. The log, the strip and the health tell the same time.
func TestOutageIsTold(t *testing.T) {
	server := testredis.Start(t)
	proxy := testredis.NewProxy(t, server)
	o, log := prepared(t, Options{Store: "redis://" + proxy.Addr, Rules: InRedis}, "")
	url := urlOf(started(t, o))
	waitFor(t, "the rules", func() bool {
		status, _ := ask(t, nil, "PUT", url+"/v1/rules", perUser, "If-Match", "*")
		return status == http.StatusOK
	})
	const lost, back, rules = "the store is unavailable; on_failure", "the store is available again", "the stored rules can be loaded again"
	lines := func(text string) int { return strings.Count(log.String(), text) }
	store := func() (s httpapi.NowStore) {
		t.Helper()
		var now httpapi.NowAnswer
		_, body := ask(t, nil, "GET", url+"/v1/now", "")
		if err := json.Unmarshal([]byte(body), &now); err != nil {
			t.Fatal(err)
		}
		return now.Store
	}
	tells := func(path, text string) bool {
		_, body := ask(t, nil, "GET", url+path, "")
		return strings.Contains(body, text)
	}
	for range 2 {
		proxy.Cut()
		waitFor(t, "the outage in the log", func() bool { return lines(lost) > lines(back) })
		s := store()
		if s.Up || s.UnavailableSince == nil || s.Error == "" {
			t.Fatalf("the strip has %+v", s)
		}
		since := moment(time.Unix(*s.UnavailableSince, 0))
		if !strings.Contains(log.String(), "since="+since) || !tells("/readyz", "ready\n--store: the store has been unavailable since "+since) || !tells("/metrics", "weir_store_up 0") {
			t.Errorf("not everything tells that the store is unavailable since %s:\n%s", since, log)
		}
		waitFor(t, "rules that cannot be loaded", func() bool { return tells("/readyz", "--rules: ") })
		proxy.Heal()
		waitFor(t, "its end in the log", func() bool { return lines(lost) == lines(back) })
		if s := store(); !s.Up || s.UnavailableSince != nil || s.Error != "" || !tells("/metrics", "weir_store_up 1") {
			t.Errorf("after the outage, the strip has %+v", s)
		}
		waitFor(t, "the rules in the log", func() bool { return lines(rules) == lines(back) && !tells("/readyz", "--") })
	}
	server.Kill()
	waitFor(t, "the outage in the strip and the log", func() bool { return !store().Up && lines(lost) == 3 })
	server.Restart() // empty
	waitFor(t, "its end in the strip", func() bool { s := store(); return s.Up && s.UnavailableSince == nil })
	waitFor(t, "its end in the log", func() bool { return lines(back) == 3 })
	var last string
	for line := range strings.Lines(log.String()) {
		for _, text := range []string{lost, back} {
			if strings.Contains(line, text) {
				if text == last {
					t.Errorf("it is logged twice: %s", line)
				}
				last = text
			}
		}
	}
}

// A check that Redis does not answer in time is in the log, before there is an outage; many are one line.
func TestLateChecksAreLogged(t *testing.T) {
	server := testredis.Start(t)
	o, log := prepared(t, Options{Store: "redis://" + server.Addr}, "rules: [{id: api, key: user, limit: 100/1h}]")
	url := urlOf(started(t, o))
	server.Pause()
	defer server.Resume()
	const late = "checks were decided without the store"
	ask(t, nil, "POST", url+"/v1/check", `{"user": "alice"}`)
	waitFor(t, "the late check in the log", func() bool { return strings.Contains(log.String(), late) })
	waitFor(t, "an outage", func() bool {
		ask(t, nil, "POST", url+"/v1/check", `{"user": "alice"}`)
		return strings.Contains(log.String(), "the store is unavailable")
	})
	if n := strings.Count(log.String(), late); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, log)
	}
}

// That Redis runs scripts, for want of functions, is in the log once, and in the metrics.
func TestScriptsAreLogged(t *testing.T) {
	server := testredis.Start(t, "--rename-command", "FCALL", "")
	o, log := prepared(t, Options{Store: "redis://" + server.Addr + "?timeout=30s"}, "rules: [{id: api, key: user, limit: 100/1h}]")
	url := urlOf(started(t, o))
	for range 3 {
		ask(t, nil, "POST", url+"/v1/check", `{"user": "alice"}`)
	}
	const scripts = "Redis runs scripts"
	waitFor(t, "the reason in the log", func() bool { return strings.Contains(log.String(), scripts) })
	if n := strings.Count(log.String(), scripts); n != 1 || !strings.Contains(log.String(), "unknown command") {
		t.Errorf("it is logged %d times:\n%s", n, log)
	}
	if _, metrics := ask(t, nil, "GET", url+"/metrics", ""); !strings.Contains(metrics, "weir_store_functions 0") {
		t.Errorf("the metrics do not tell: %s", metrics)
	}
}

// A check before rules are loaded asked no store.
func TestNoRulesAreNotLate(t *testing.T) {
	var l late
	e, err := engine.New(engine.Options{Observers: []engine.Observer{&l}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Check(t.Context(), &rule.Request{}, new(engine.Verdict)); err != nil || l.checks.Load() != 0 {
		t.Errorf("%d late checks, %v", l.checks.Load(), err)
	}
}

// Warnings of the rules are logged when they come into force, and not again.
func TestWarningsAreLogged(t *testing.T) {
	o, log := prepared(t, Options{}, "rules: [{id: uploads, match: {path: /uploads}, key: user, limit: 5/1h, concurrency: 2}, {id: signin, match: {path: /signin}, key: ip, limit: 5/1h}]")
	a := started(t, o)
	if err := a.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"the rules have warnings", "rules have concurrency"} {
		if n := strings.Count(log.String(), text); n != 1 {
			t.Errorf("%q is logged %d times:\n%s", text, n, log)
		}
	}
}

// That the store is too far away for its timeout, and for leases, is in the log, with what would do.
func TestFarStoreWithLeases(t *testing.T) {
	proxy := testredis.NewProxy(t, testredis.Start(t))
	proxy.Latency(100 * time.Millisecond)
	for _, c := range []struct {
		rules          string
		lease, timeout time.Duration
		short          bool
	}{
		{rules: `[{id: api, key: user, limit: 100/1h, lease: 1h}, {id: slow, key: user, limit: 100/1h, lease: 90ms}]`, timeout: time.Minute, short: true},
		{rules: `[{id: api, key: user, limit: 100/1h}]`, timeout: time.Minute, lease: time.Hour},
		{rules: `[{id: api, key: user, limit: 100/1h}]`, timeout: time.Minute},
	} {
		o, log := prepared(t, Options{Store: "redis://" + proxy.Addr + "?dial_timeout=1m&timeout=" + c.timeout.String(), Lease: c.lease}, "rules: "+c.rules)
		a := started(t, o)
		tells := func(message string) bool { return strings.Contains(log.String(), message) }
		const late, short = "not more than two round trips", "less than ten round trips"
		if tells(late) || tells(short) != c.short || c.short && !strings.Contains(log.String(), "rules=slow") {
			t.Errorf("%+v: %s", c, log)
		}
		if c.short { // a timeout that is too short, but long enough for the test to be a test on a slow machine
			a.store.trip = time.Minute / 2
			table, _ := a.engine.Rules()
			a.rules.warnLeases(table)
			if !tells(late) || !tells("at_least=1m30s") {
				t.Errorf("%s", log)
			}
		}
	}
}
