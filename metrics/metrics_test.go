package metrics

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/lease"
	"github.com/weirhq/weir/store/memory"
)

const several = `
rules:
  - {id: by-user, key: user, algorithm: sliding_log, limits: [2/1h, 100/1d]}
  - {id: trial, key: user, algorithm: sliding_log, limit: 1/1h, mode: shadow}
  - {id: retired, key: user, limit: 5/1h, mode: "off"}
exempt: {user: [healthcheck]}
block: {user: [mallory]}
`

// Each request has one outcome, and each rule says one thing of it.
func TestOutcomes(t *testing.T) {
	b := newBench(t, several, Options{})
	for range 3 {
		b.check(t, alice)
	}
	b.check(t, rule.Request{User: "healthcheck"})
	b.check(t, rule.Request{User: "mallory"})
	b.check(t, rule.Request{IP: alice.IP}) // by which no rule counts
	want(t, b.Metrics, "weir_requests_total",
		`{outcome="allowed"} 1`, `{outcome="blocked"} 1`, `{outcome="degraded_allowed"} 0`, `{outcome="degraded_denied"} 0`,
		`{outcome="denied"} 1`, `{outcome="exempt"} 1`, `{outcome="no_rule"} 1`, `{outcome="shadow_denied"} 1
{outcome="soft_denied"} 0
{outcome="unknown_client"} 0`)
	// Two limits of a rule are one decision; what the first rule denies, the
	// trial is still asked about.
	want(t, b.Metrics, "weir_decisions_total",
		`{outcome="allowed",rule="by-user"} 2`, `{outcome="denied",rule="by-user"} 1`,
		`{outcome="allowed",rule="trial"} 1`, `{outcome="shadow_denied",rule="trial"} 2`)
	want(t, b.Metrics, "weir_decision_seconds_count", "6")
	want(t, b.Metrics, "weir_rules", `{mode="enforce"} 1`, `{mode="off"} 1`, `{mode="shadow"} 1
{mode="soft"} 0`)
	want(t, b.Metrics, "weir_degraded_total", `{policy="closed"} 0`, `{policy="local"} 0`, `{policy="open"} 0`)
}

// Each level that denies is counted once, also in the shadow, and goes on when the rules change.
func TestLevels(t *testing.T) {
	rules := func(levels string) string {
		return "{levels: [org, team, user], rules: [{id: a, key: levels, algorithm: fixed_window, levels: {" + levels + "}}, {id: s, key: levels, mode: shadow, levels: {org: 1/1h}}, {id: b, key: user, limit: 9/1h}]}"
	}
	b := newBench(t, rules("org: 3/1h, user: {limits: [2/1h, 2/1d]}"), Options{})
	send := func(user string) {
		b.check(t, rule.Request{User: user, Attributes: map[string]string{"org": "acme"}})
	}
	for range 3 {
		send("ann") // the third is denied by both limits of the user
	}
	want(t, b.Metrics, "weir_level_denials_total", `{level="org",rule="a"} 0`, `{level="user",rule="a"} 1`, `{level="org",rule="s"} 2`)
	send("bob")
	send("ann") // by the user and the organization
	want(t, b.Metrics, "weir_level_denials_total", `{level="org",rule="a"} 1`, `{level="org",rule="s"} 4`, `{level="user",rule="a"} 2`)
	b.install(t, rules("team: 5/1h, org: 3/1h"), 2)
	send("eve")
	want(t, b.Metrics, "weir_level_denials_total", `{level="org",rule="a"} 2`, `{level="team",rule="a"} 0`, `{level="org",rule="s"} 5`)
}

// A client that no directory knows is not counted as a blocked one.
func TestUnknownClients(t *testing.T) {
	b := newBench(t, several, Options{})
	directory, problems, err := rule.ReadDirectory("", strings.NewReader(`{"client": "user:bob"}`))
	testkit.OK(t, errors.Join(err, problems.Err()))
	b.engine.InstallClients(engine.Clients{Directory: directory, DenyUnknown: true})
	b.check(t, rule.Request{APIKey: "invented"})
	b.check(t, rule.Request{User: "mallory"})
	if got := series(t, b.Metrics, "weir_requests_total"); !strings.Contains(got, `{outcome="blocked"} 1`) || !strings.Contains(got, `{outcome="unknown_client"} 1`) {
		t.Error(got)
	}
}

// A degraded request is counted once by its policy, and once by its cause.
func TestDegraded(t *testing.T) {
	lost := fmt.Errorf("redis: %w", weir.ErrUnavailable)
	late := fmt.Errorf("redis: %w", context.DeadlineExceeded)
	for _, c := range []struct {
		name, policies string
		reason         error
		degraded       string // which policy
		kind           string
		requests       string // which outcome
		decisions      []string
	}{
		{"open", "open", lost, "open", "unavailable", "degraded_allowed", []string{`{outcome="allowed",rule="r0"} 0`, `{outcome="denied",rule="r0"} 0`, `{outcome="degraded_allowed",rule="r0"} 1`}},
		{"closed", "closed", late, "closed", "timeout", "degraded_denied", []string{`{outcome="allowed",rule="r0"} 0`, `{outcome="denied",rule="r0"} 0`, `{outcome="degraded_denied",rule="r0"} 1`}},
		{"local", "local", errors.New("OOM"), "local", "other", "degraded_allowed", []string{`{outcome="allowed",rule="r0"} 1`, `{outcome="denied",rule="r0"} 0`}},
		{"mixed", "local closed", lost, "closed", "unavailable", "degraded_denied", []string{
			`{outcome="allowed",rule="r0"} 0`, `{outcome="denied",rule="r0"} 0`, `{outcome="degraded_allowed",rule="r0"} 1`,
			`{outcome="allowed",rule="r1"} 0`, `{outcome="denied",rule="r1"} 0`, `{outcome="degraded_denied",rule="r1"} 1`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules := "rules:\n"
			for i, policy := range strings.Fields(c.policies) {
				rules += fmt.Sprintf("  - {id: r%d, key: user, limit: %d/1h, on_failure: %s}\n", i, 5+i, policy)
			}
			b := newBench(t, rules, Options{})
			b.store.lose(c.reason)
			b.check(t, alice)
			for name, label := range map[string]string{
				"weir_degraded_total": `policy="` + c.degraded, "weir_store_errors_total": `kind="` + c.kind, "weir_requests_total": `outcome="` + c.requests,
			} {
				for line := range strings.Lines(series(t, b.Metrics, name)) {
					if one := strings.HasSuffix(strings.TrimSpace(line), " 1"); one != strings.Contains(line, label+`"`) {
						t.Errorf("%s%s", name, line)
					}
				}
			}
			want(t, b.Metrics, "weir_decisions_total", c.decisions...)
		})
	}
}

// That no rules are loaded is no error of the store.
func TestNoRules(t *testing.T) {
	m, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Observers: []engine.Observer{m}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Check(t.Context(), &rule.Request{}, new(engine.Verdict)); err != nil {
		t.Fatal(err)
	}
	want(t, m, "weir_degraded_total", `{policy="closed"} 0`, `{policy="local"} 0`, `{policy="open"} 1`)
	want(t, m, "weir_store_errors_total", `{kind="busy"} 0`, `{kind="other"} 0`, `{kind="timeout"} 0`, `{kind="unavailable"} 0`)
}

// What the program tells about itself is asked at each scrape.
func TestGauges(t *testing.T) {
	up, delayed := true, 3
	stats := memory.Stats{Keys: 7, Expired: 5, Evicted: 2}
	b := newBench(t, several, Options{
		Version: "v1.2.3", StoreUp: func() bool { return up }, StoreFunctions: func() bool { return !up }, Delayed: func() int { return delayed },
		Leases: func() lease.Stats {
			return lease.Stats{Local: 90, Denied: 5, Asked: 6, Messages: 7, Keys: 3, Leased: 40, Returned: 8, Lost: 2, Names: []lease.NameStats{
				{Name: "by-user", Local: 60, Denied: 4, Asked: 3, Leased: 30, Returned: 8}, {Name: "gone", Local: 20, Leased: 7}, {Name: "gone, too", Local: 1, Leased: 3, Lost: 2},
			}}
		},
		Keys: func() memory.Stats { return stats }, MaxKeys: 10, Clock: func() time.Time { return someTime },
		Queues: func() []Queue {
			return []Queue{{Name: "mail", Ready: 4, Delayed: 3, Leased: 2, Dead: 1, Age: 1500 * time.Millisecond}, {Name: "sms"}}
		},
		Tokens:     func() map[string]int64 { return map[string]int64{"valid": 7, "expired": 2} },
		Counters:   func() Counters { return Counters{Entries: 8, Capacity: 6, Rejected: 4} },
		Statistics: func() Statistics { return Statistics{Lost: 9, Alerts: 2} },
		EnvoyXDS:   func() EnvoyXDS { return EnvoyXDS{Connected: true, Version: "v7", Accepted: 3, Rejected: 1} },
		Files: func() []File {
			return []File{{Name: "keys.snapshot", Saved: someTime, Unusable: true}, {Name: "queues.snapshot", Failures: 3}}
		},
	})
	want(t, b.Metrics, "weir_data_save_failures_total", `{file="keys.snapshot"} 0`, `{file="queues.snapshot"} 3`)
	want(t, b.Metrics, "weir_data_saved_timestamp_seconds", `{file="keys.snapshot"} 1.7672256005e+09`)
	want(t, b.Metrics, "weir_data_unusable_files", "1")
	want(t, b.Metrics, "weir_envoy_xds_connected", "1")
	want(t, b.Metrics, "weir_envoy_xds_version_info", `{version="v7"} 1`)
	want(t, b.Metrics, "weir_envoy_xds_responses_total", `{result="accepted"} 3`, `{result="rejected"} 1`)
	want(t, b.Metrics, "weir_tokens_total", `{result="expired"} 2`, `{result="valid"} 7`)
	want(t, b.Metrics, "weir_queue_items",
		`{queue="mail",state="ready"} 4`, `{queue="mail",state="delayed"} 3`, `{queue="mail",state="leased"} 2`, `{queue="mail",state="dead"} 1`,
		`{queue="sms",state="ready"} 0`, `{queue="sms",state="delayed"} 0`, `{queue="sms",state="leased"} 0`, `{queue="sms",state="dead"} 0`)
	want(t, b.Metrics, "weir_queue_oldest_seconds", `{queue="mail"} 1.5`, `{queue="sms"} 0`)
	for name, value := range map[string]string{
		"weir_store_up": "1", "weir_store_functions": "0", "weir_delayed_requests": "3", "weir_keys": "7", "weir_keys_max": "10",
		"weir_lease_messages_total": "7", "weir_lease_keys": "3",
		"weir_counter_entries": "8", "weir_counter_capacity": "6", "weir_counter_rejected_total": "4",
		"weir_keys_expired_total": "5", "weir_keys_evicted_total": "2", "weir_rules_version": "1",
		"weir_rules_loaded_timestamp_seconds": "1.7672256005e+09",
		"weir_stats_lost_total":               "9", "weir_alerts_firing": "2",
		"weir_rules_last_reload_successful": "1", "weir_rules_reload_failures_total": "0",
	} {
		want(t, b.Metrics, name, value)
	}
	want(t, b.Metrics, "weir_lease_checks_total", `{how="asked"} 6`, `{how="denied"} 5`, `{how="local"} 90`)
	want(t, b.Metrics, "weir_lease_decisions_total", `{how="asked",rule="(other)"} 0`, `{how="asked",rule="by-user"} 3`, `{how="denied",rule="(other)"} 0`,
		`{how="denied",rule="by-user"} 4`, `{how="local",rule="(other)"} 21`, `{how="local",rule="by-user"} 60`)
	want(t, b.Metrics, "weir_lease_units", `{rule="(other)"} 10`, `{rule="by-user"} 30`)
	want(t, b.Metrics, "weir_lease_units_returned_total", `{rule="(other)"} 0`, `{rule="by-user"} 8`)
	want(t, b.Metrics, "weir_lease_units_lost_total", `{rule="(other)"} 2`, `{rule="by-user"} 0`)
	up, delayed = false, 0
	b.ReloadFailed()
	want(t, b.Metrics, "weir_store_up", "0")
	want(t, b.Metrics, "weir_store_functions", "1")
	want(t, b.Metrics, "weir_delayed_requests", "0")
	want(t, b.Metrics, "weir_rules_last_reload_successful", "0")
	want(t, b.Metrics, "weir_rules_reload_failures_total", "1")
	b.install(t, several, 2)
	want(t, b.Metrics, "weir_rules_last_reload_successful", "1")
	want(t, b.Metrics, "weir_rules_version", "2")
	// Good rules are no news of Envoy's files, nor the other way about.
	b.EnvoyReloaded(false)
	b.install(t, several, 3)
	want(t, b.Metrics, "weir_rules_last_reload_successful", "0")
	want(t, b.Metrics, "weir_rules_reload_failures_total", "2")
	b.ReloadFailed()
	b.EnvoyReloaded(true)
	want(t, b.Metrics, "weir_rules_last_reload_successful", "0")
	b.install(t, several, 4)
	want(t, b.Metrics, "weir_rules_last_reload_successful", "1")
	for i, reloaded := range []func(bool){b.ClientsReloaded, b.PricesReloaded} {
		reloaded(false)
		want(t, b.Metrics, "weir_rules_last_reload_successful", "0")
		want(t, b.Metrics, "weir_rules_reload_failures_total", fmt.Sprint(4+i))
		reloaded(true)
		want(t, b.Metrics, "weir_rules_last_reload_successful", "1")
	}
	if info := series(t, b.Metrics, "weir_build_info"); !strings.Contains(info, `version="v1.2.3"`) || !strings.Contains(info, `goversion="go`) {
		t.Error(info)
	}
	for _, name := range []string{"go_goroutines", "process_start_time_seconds"} {
		if series(t, b.Metrics, name) == "" {
			t.Errorf("there is no %s", name)
		}
	}
	// Without a store in memory there is nothing to say about keys.
	plain := newBench(t, several, Options{})
	want(t, plain.Metrics, "weir_keys")
	want(t, plain.Metrics, "weir_store_functions")
	want(t, plain.Metrics, "weir_store_up", "1")
}

// The histogram counts each duration in the first bucket that holds it, whichever
// stripe it went to.
func TestTimings(t *testing.T) {
	b := newBench(t, several, Options{})
	verdicts := make([]engine.Verdict, 100)
	for i := range verdicts {
		b.Observe(&alice, &verdicts[i], time.Microsecond)
	}
	used := 0
	for i := range b.stripes {
		if b.stripes[i].decision.buckets[0].Load() > 0 {
			used++
		}
	}
	if used < 4 {
		t.Errorf("100 verdicts went to %d stripes", used)
	}
	for _, took := range []time.Duration{-1, time.Microsecond + 1, 40 * time.Millisecond, 250 * time.Millisecond, time.Hour} {
		b.Observe(&alice, &verdicts[0], took)
	}
	got := series(t, b.Metrics, "weir_decision_seconds_bucket")
	for _, line := range []string{
		`{le="1e-06"} 101`, `{le="2.5e-06"} 102`, `{le="0.025"} 102`, `{le="0.05"} 103`, `{le="0.1"} 103`, `{le="0.25"} 104`, `{le="+Inf"} 105`,
	} {
		if !strings.Contains(got+"\n", line+"\n") {
			t.Errorf("%s is missing in\n%s", line, got)
		}
	}
	want(t, b.Metrics, "weir_decision_seconds_count", "105")
	want(t, b.Metrics, "weir_decision_seconds_sum", "3600.290101001")
}

// A scrape is compressed if the scraper likes, and what it holds is what Prometheus's
// own tool finds in order.
func TestHandler(t *testing.T) {
	b := newBench(t, several, Options{Keys: func() memory.Stats { return memory.Stats{} }})
	b.check(t, alice)
	b.ObserveHTTP("GET /", 200, time.Millisecond)
	b.ObserveUpstream("/", "shop", 0, io.ErrUnexpectedEOF, time.Millisecond)
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	b.Handler().ServeHTTP(w, r)
	if w.Header().Get("Content-Encoding") != "gzip" || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("%v", w.Header())
	}
	plain, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = plain
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// Only so many scrapes are answered at once.
func TestScrapesAreBounded(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	m, err := New(Options{Delayed: func() int { asked <- struct{}{}; <-release; return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	codes := make(chan int, maxScrapes)
	for range maxScrapes {
		go func() {
			w := httptest.NewRecorder()
			m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
			codes <- w.Code
		}()
	}
	for range maxScrapes {
		<-asked
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 503 {
		t.Errorf("one more: %d", w.Code)
	}
	close(release)
	for range maxScrapes {
		if code := <-codes; code != 200 {
			t.Errorf("%d", code)
		}
	}
}

func TestNew(t *testing.T) {
	for name, o := range map[string]Options{"rules": {MaxRules: -1}, "routes": {MaxRoutes: -1}, "keys": {MaxKeys: -1}} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: a negative bound was accepted", name)
		} else {
			t.Log(err)
		}
	}
}
