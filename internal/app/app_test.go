package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/gateway"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

// safeBuffer is a log that is read while it is written.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// prepared fills in what every test needs: a free port, a file of rules, a log.
func prepared(t *testing.T, o Options, rules string) (Options, *safeBuffer) {
	t.Helper()
	log := &safeBuffer{}
	o.HTTP, o.GRPC = "127.0.0.1:0", "127.0.0.1:0"
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	if o.Rules == "" {
		o.Rules = filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(o.Rules, []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return o, log
}

// started is a server that runs until the test ends.
func started(t *testing.T, o Options) *App {
	t.Helper()
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return a
}

// ask sends one request by a connection of its own, and returns the status and the body.
func ask(t *testing.T, c *http.Client, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	if c == nil {
		c = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

const perUser = "rules: [{id: api, key: user, algorithm: sliding_log, limit: 2/1h}]\n"

func TestStartAndStop(t *testing.T) {
	o, _ := prepared(t, Options{}, perUser)
	a := started(t, o)
	url := "http://" + a.Addrs().HTTP.String()
	for i := range 3 {
		status, body := ask(t, nil, "POST", url+"/v1/check", `{"user": "alice"}`)
		if status != http.StatusOK || strings.Contains(body, `"allowed":true`) != (i < 2) {
			t.Errorf("request %d: %d %s", i+1, status, body)
		}
	}
	if status, body := ask(t, nil, "GET", url+"/metrics", ""); status != http.StatusOK || !strings.Contains(body, `weir_decisions_total{outcome="denied",rule="api"} 1`) {
		t.Errorf("%d\n%s", status, body)
	}
	if err := a.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := a.ready(t.Context()); err == nil {
		t.Error("it is ready although it has stopped")
	}
	if _, err := net.Dial("tcp", a.Addrs().HTTP.String()); err == nil {
		t.Error("it still listens")
	}
}

// Rules that cannot be loaded show as long as that is so, even after a reload, with the time since
// when; weir stays ready. The log tells once that they are repaired, although they are those in force.
func TestBrokenRules(t *testing.T) {
	o, log := prepared(t, Options{}, perUser)
	a := started(t, o)
	url := "http://" + a.Addrs().HTTP.String()
	get := func(path string) string {
		t.Helper()
		status, body := ask(t, nil, "GET", url+path, "")
		if status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
		return body
	}
	replace := func(rules string) {
		t.Helper()
		if err := os.WriteFile(o.Rules, []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for n, broken := range []string{"rules: [{id: api}]", "rules: [", ""} {
		replace(broken)
		waitFor(t, "the error", func() bool { return a.rules.trouble() != nil })
		since, _ := a.rules.notLoaded()
		if err := a.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "the rules in "+o.Rules+": ") {
			t.Errorf("%q: the error of a reload is %v", broken, err)
		}
		if now, _ := a.rules.notLoaded(); now != since {
			t.Errorf("%q: since %v, before %v", broken, now, since)
		}
		for path, want := range map[string]string{
			"/readyz": "ready\n--rules: the stored rules have failed to load since ", "/v1/rules": `"not_loaded":{"since":`, "/v1/stats/summary": `"not_loaded":{"since":`,
			"/metrics": "weir_rules_last_reload_successful 0",
		} {
			if body := get(path); !strings.Contains(body, want) {
				t.Errorf("%q: %s: %s", broken, path, body)
			}
		}
		replace(perUser)
		waitFor(t, "the end of it", func() bool { return strings.Count(log.String(), "the stored rules can be loaded again") == n+1 })
		if err := a.Reload(t.Context()); err != nil || get("/readyz") != "ready\n" || strings.Contains(get("/v1/rules")+get("/v1/stats/summary"), "not_loaded") {
			t.Errorf("%q: %v", broken, err)
		}
	}
	if n := strings.Count(log.String(), "weir rules validate "+o.Rules); n != 1 {
		t.Errorf("the log tells %d times how to see several errors:\n%s", n, log)
	}
	replace("rules: [half")
	waitFor(t, "the error", func() bool { return a.rules.trouble() != nil })
	const copied = "rules.yaml.history/unusable.yaml"
	if status, body := ask(t, nil, "PUT", url+"/v1/block?ip=192.0.2.1", ""); status != http.StatusOK || !strings.Contains(body, copied) {
		t.Errorf("%d %s", status, body)
	}
	const told = "a change of the rules replaced stored rules with errors"
	if _, line, _ := strings.Cut(log.String(), told); !strings.Contains(line, copied) || strings.Contains(line, told) {
		t.Errorf("the log is\n%s", log)
	}
}

// A start that fails leaves nothing behind: no address, no goroutine.
func TestFailedStartIsUndone(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	redis := testredis.Start(t)
	o, _ := prepared(t, Options{Store: "redis://" + redis.Addr, Data: t.TempDir()}, perUser)
	o.Gateway = &Gateway{Listen: taken.Addr().String()}
	o.Gateway.Routes = routes(t, "http://127.0.0.1:1")
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "--listen: address "+taken.Addr().String()+" is already in use") {
		t.Fatalf("Start = %v", err)
	}
	if _, err := net.Dial("tcp", a.Addrs().HTTP.String()); err == nil {
		t.Error("the API still listens")
	}
}

// Rules that are kept in Redis are known even when Redis is not there at the start.
func TestRulesAreRemembered(t *testing.T) {
	redis := testredis.Start(t)
	o, log := prepared(t, Options{Store: "redis://" + redis.Addr + "?timeout=10s", Rules: InRedis, Data: t.TempDir()}, "")
	a := started(t, o)
	url := "http://" + a.Addrs().HTTP.String()
	if status, body := ask(t, nil, "PUT", url+"/v1/rules", perUser, "If-Match", "*"); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	seen := filepath.Join(o.Data, "rules.seen.yaml")
	waitFor(t, "the copy", func() bool { text, _ := os.ReadFile(seen); return string(text) == perUser })
	if err := a.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	redis.Kill()
	a = started(t, o)
	if table, _ := a.engine.Rules(); len(table.Rules()) != 1 {
		t.Errorf("the rules are not known:\n%s", log)
	}
	// They have no version, but they are the same rules, so that instances can be compared.
	if _, body := ask(t, nil, "GET", "http://"+a.Addrs().HTTP.String()+"/metrics", ""); !strings.Contains(body, "\nweir_rules_version 0\n") || !strings.Contains(body, "\nweir_rules_hash 13855\n") {
		t.Errorf("the metrics are\n%s", body)
	}
	redis.Restart() // empty: nothing was saved
	waitFor(t, "the rules of the new Redis", func() bool { table, _ := a.engine.Rules(); return len(table.Rules()) == 0 })
	if err := a.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	// A copy that cannot be used is moved aside, and not before the start has succeeded.
	redis.Kill()
	const wrong = "rules: [{id: api}]"
	if err := os.WriteFile(seen, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	failing := o
	failing.GRPC = taken.Addr().String()
	if b, err := New(failing); err != nil {
		t.Fatal(err)
	} else if err := b.Start(t.Context()); err == nil {
		t.Fatal("it has started")
	}
	if text, err := os.ReadFile(seen); string(text) != wrong {
		t.Errorf("%s has %q, %v", seen, text, err)
	}
	started(t, o)
	if moved, err := filepath.Glob(seen + ".unusable-*"); len(moved) != 1 {
		t.Errorf("%s, %v:\n%s", moved, err, log)
	}
}

// Under an attack the log names the attackers, but not every request.
func TestDenialsAreSampled(t *testing.T) {
	o, log := prepared(t, Options{}, perUser)
	a := started(t, o)
	const requests = 20_000
	var v engine.Verdict
	for range requests {
		if err := a.engine.Check(t.Context(), &rule.Request{User: "mallory", APIKey: "secret"}, &v); err != nil {
			t.Fatal(err)
		}
	}
	// It is unknown how many seconds it took; each second has a maximum number of lines.
	lines := strings.Count(log.String(), "msg=denied")
	if lines == 0 || lines > requests/100 || !strings.Contains(log.String(), "rule=api key=user:mallory") {
		t.Errorf("%d lines:\n%.1000s", lines, log)
	}
	if strings.Contains(log.String(), "secret") {
		t.Error("a secret is in the log")
	}
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s never came", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Every mistake in the options is told, not only the first.
func TestNewReportsEverything(t *testing.T) {
	_, err := New(Options{HTTP: "0.0.0.0:80", Store: "memory://?keys=1", Limits: httplimit.Options{UserHeader: "X-User"}, Grace: -1, SnapshotEvery: time.Millisecond})
	for _, want := range []string{"--admin-token-file", "max_keys", "--trusted-proxies", "--grace", "--snapshot-every"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing in %v", want, err)
		}
	}
	for text, want := range map[string]string{
		"memory://": "0 <nil>", "memory://?max_keys=7": "7 <nil>", "memory:": "0 <nil>",
		"redis://localhost": "0 not in memory", "memory://?max_keys=0": "0 --store", "memory://x": "0 --store", "memory://?max_keys=1&max_keys=2": "0 --store",
	} {
		n, err := memoryKeys(text)
		if got := fmt.Sprint(n, " ", err); !strings.HasPrefix(got, want) {
			t.Errorf("memoryKeys(%s) = %s, want %s", text, got, want)
		}
	}
}

// A file that does not exist may be misspelled, so the log says that it was created.
func TestCreatedRulesAreTold(t *testing.T) {
	o, log := prepared(t, Options{Rules: filepath.Join(t.TempDir(), "ruels.yaml")}, "")
	const created = `msg="created the rules file, because it did not exist" rules=`
	for _, want := range []int{1, 1} { // the second start finds it
		a := started(t, o)
		if text := log.String(); strings.Count(text, created+o.Rules) != want || !strings.Contains(text, `msg="there are no rules; every request is allowed"`) {
			t.Errorf("the log has\n%s", text)
		}
		if err := a.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Only the process knows whether a restart resets the usage of a long window. It says so once, and
// not of a rule that is off.
func TestRestartWarns(t *testing.T) {
	const warning = "a restart resets their usage"
	rules := string(testkit.Must(os.ReadFile("../../examples/rules/plans.yaml"))(t)) + "\n  - {id: unused, key: user, limit: 5/month, mode: off}\n  - {id: daily, key: user, limit: 5/1d}\n"
	for name, c := range map[string]struct {
		options Options
		want    int
	}{
		"memory": {Options{}, 1},
		"data":   {Options{Data: t.TempDir()}, 0},
		"redis":  {Options{Store: "redis://" + testredis.Start(t).Addr}, 0},
	} {
		o, log := prepared(t, c.options, rules)
		started(t, o)
		if got := log.String(); strings.Count(got, warning) != c.want || strings.Contains(got, "the rules have warnings") || c.want > 0 && !strings.Contains(got, "rules=quota\n") {
			t.Errorf("%s:\n%s", name, log)
		}
	}
}

// Who can only check requests is told that their places are not given back. A gateway sees the
// end of responses.
func TestConcurrencyWarns(t *testing.T) {
	const warning = "rules have concurrency"
	o, log := prepared(t, Options{}, "rules: [{id: at-once, key: user, concurrency: 5}]")
	started(t, o)
	if !strings.Contains(log.String(), warning) || !strings.Contains(log.String(), "rules=at-once") {
		t.Errorf("no warning:\n%s", log)
	}
	o, log = prepared(t, Options{}, "rules: [{id: at-once, key: user, concurrency: 5, mode: off}]")
	started(t, o)
	if strings.Contains(log.String(), warning) {
		t.Errorf("a warning about a rule that is off:\n%s", log)
	}
	o, log = prepared(t, Options{}, "rules: [{id: at-once, key: user, concurrency: 5}]")
	o.Gateway = &Gateway{Listen: "127.0.0.1:0"}
	o.Gateway.Routes = append(o.Gateway.Routes, testkit.Must(gateway.ParseRoute("http://127.0.0.1:1"))(t))
	started(t, o)
	if strings.Contains(log.String(), warning) {
		t.Errorf("a warning of a gateway:\n%s", log)
	}
}
