package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	filerepo "github.com/weirhq/weir/internal/rules/repo/file"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/store/memory"
)

// recorded is a weir in this process that remembers what happened, by a clock that tests
// move.
type recorded struct {
	*httptest.Server
	recorder *stats.Recorder
	engine   *engine.Engine
	now      atomic.Int64 // Unix microseconds
}

// steady makes every decision take the same time, so that screens can be compared.
type steady struct{ *stats.Recorder }

func (s steady) Observe(req *rule.Request, v *engine.Verdict, _ time.Duration) {
	s.Recorder.Observe(req, v, 20*time.Microsecond)
}

func serveStats(t *testing.T, document string) *recorded {
	t.Helper()
	r := &recorded{}
	r.now.Store(time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC).UnixMicro())
	clock := func() weir.Micros { return weir.Micros(r.now.Load()) }
	wall := func() time.Time { return time.UnixMicro(r.now.Load()) }
	quiet := slog.New(slog.DiscardHandler)
	kept, err := archive.NewMemory(archive.Keep{})
	if err != nil {
		t.Fatal(err)
	}
	if r.recorder, err = stats.New(stats.Options{Archive: kept, Clock: wall, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	watcher, err := alert.New(alert.Options{Source: r.recorder, Clock: wall, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Store: memory.New(memory.Options{Clock: clock}), Clock: clock, Observers: []engine.Observer{steady{r.recorder}}})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filerepo.Open(file(t, "rules.yaml", document), filerepo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := rule.Usable("", []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e.Install(table, 1)
	r.engine = e
	handler, err := httpapi.New(httpapi.Options{
		Service: manage.Service{Engine: e, Rules: rules, Apply: func(repo.Version) error { return nil }, Logger: quiet},
		Stats:   r.recorder, Alerts: watcher.List(), Clock: wall,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Server = httptest.NewServer(handler)
	t.Cleanup(r.Close)
	return r
}

// check asks n times whether a request may pass.
func (r *recorded) check(t *testing.T, n int, body string) {
	t.Helper()
	for range n {
		resp, err := r.Client().Post(r.URL+"/v1/check", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", body, resp.Status)
		}
	}
}

// pass lets seconds pass, and keeps what happened in them.
func (r *recorded) pass(t *testing.T, seconds int) {
	t.Helper()
	r.now.Add(int64(seconds) * 1e6)
	if err := r.recorder.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// busy is a minute of traffic.
func (r *recorded) busy(t *testing.T) {
	t.Helper()
	for i := range 12 {
		r.check(t, 1+i%4, `{"ip":"203.0.113.7","method":"POST","path":"/api/login","user":"alice"}`)
		r.check(t, 1, `{"user":"漢字","path":"/api/x"}`)
		r.pass(t, 4)
	}
}

func (r *recorded) on(t *testing.T, args ...string) outcome {
	t.Helper()
	return command(t, "", append(args, "--server", r.URL)...)
}

func TestTopOnce(t *testing.T) {
	r := serveStats(t, loginAndAPI)
	r.busy(t)
	got := r.on(t, "top", "--once")
	const want = `weir top  http://127.0.0.1:PORT  TIME  store available

              last 5 s  last minute
requests         1.0/s        0.7/s
allowed          0.2/s        0.3/s
denied           0.8/s        0.4/s
denied share    80.0 %       59.5 %

decisions   p50 20 µs   p90 20 µs   p99 20 µs

rule   requests  allowed  denied  degraded  denied share
api       0.7/s    0.7/s     0/s       0/s         0.0 %
login     0.5/s    0.1/s   0.4/s       0/s        83.3 %

requests  most denied, last minute
25        ip:203.0.113.7
25        user:alice

requests  most allowed, last minute
12        user:漢字
5         ip:203.0.113.7
5         user:alice
`
	shown := regexp.MustCompile(`:\d+  \d\d:\d\d:\d\d`).ReplaceAllString(got.stdout, ":PORT  TIME")
	if got.code != 0 || got.stderr != "" || shown != want {
		t.Errorf("exit code %d\n%s\nwant\n%s%s", got.code, shown, want, got.stderr)
	}
	var parts struct {
		Summary httpapi.SummaryAnswer
		Denied  httpapi.TopAnswer
	}
	if err := json.Unmarshal([]byte(r.on(t, "top", "--output", "json").stdout), &parts); err != nil || parts.Summary.Requests != 42 || parts.Denied.Total != 25 {
		t.Errorf("%v, %+v", err, parts)
	}
}

// What open requests have reserved is shown with what those that have ended have used and got back, by model.
func TestTopReserved(t *testing.T) {
	r := serveStats(t, `rules: [{id: team, key: user, limit: 100000/day, tokens: {reserve: {output: 100}}}]`)
	gate, err := engine.NewGate(r.engine, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	req := rule.Request{User: "alice", Prompt: &rule.Prompt{Model: "gpt-4o", Input: 10, MaxOutput: 1000}}
	serve := func() *engine.Hold {
		var v engine.Verdict
		var d engine.Denial
		if ok, err := gate.Reserve(t.Context(), &req, time.Hour, &v, &d); !ok || err != nil {
			t.Fatal(d, err)
		}
		return gate.Serve(&req, time.Hour, &v)
	}
	ended, open := serve(), serve()
	if err := ended.End(&rule.Response{Status: 200, Tokens: &rule.Usage{Input: 10, Output: 5}}, nil); err != nil {
		t.Fatal(err)
	}
	r.pass(t, 1)
	r.on(t, "top", "--once").want(t, 0, `(?m)^reserved under  model   open  now  may exceed  used  refunded\nteam            gpt-4o     1  110         900    15        95$`, "")
	if err := open.End(&rule.Response{Status: 502}, nil); err != nil {
		t.Fatal(err)
	}
}

// Whoever is near a budget in dollars is told of in dollars, by the API as well, and so are the limits that would be enough.
func TestTopDollars(t *testing.T) {
	r := serveStats(t, `rules: [{id: spend, key: user, limit: 20usd/day, warn: [80%]}]`)
	r.check(t, 1, `{"user":"alice","cost":{"usd":18500000}}`)
	r.pass(t, 1)
	r.on(t, "top", "--once").want(t, 0, `(?m)^~ 80 % +user:alice has used \$18\.50 of \$20\.00 of spend \(at `, "")
	var all httpapi.WarningsAnswer
	resp, err := r.Client().Get(r.URL + "/v1/stats/warnings?min_period=1d")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil || len(all.Warnings) != 1 {
		t.Fatal(err, all)
	}
	if w := all.Warnings[0]; w.Policy != "20usd/day" || w.Used != 18_500_000 || *w.Display != (archive.WarningDisplay{Used: "$18.50", Limit: "$20.00"}) {
		t.Errorf("%+v", w)
	}
	r.pass(t, 90_000)
	r.check(t, 2, `{"user":"bob","cost":{"usd":15000000}}`)
	r.pass(t, 60)
	r.on(t, "rules", "suggest", "--share", "0.001,0.9", "--since", "7d").want(t, 0, `(?m)^spend +- +1d .* > \$1\d\.\S+ +\d\S*usd/day$`, "")
}

func TestTopWithoutTraffic(t *testing.T) {
	serveStats(t, loginAndAPI).on(t, "top").want(t, 0, `(?s)requests +0/s .*decisions   -\n\z`, "")
}

// Nothing is drawn when there is nothing to draw.
func TestTopCannot(t *testing.T) {
	serveRules(t, loginAndAPI, "").on(t, "top").want(t, 1, "", `^weir: statistics are not enabled on this server\n\z`)
	serveRules(t, loginAndAPI, "alice admin "+adminToken).on(t, "top").want(t, 1, "", `^weir: \S+ requires a token`)
	for _, verb := range []string{"top", "alerts", "alerts silence drop", "rules suggest", "rules suggest x"} {
		command(t, "", append(strings.Fields(verb), "--server", nobody)...).want(t, 1, "", `^weir: no weir at `)
	}
}

func TestTopUsage(t *testing.T) {
	for args, want := range map[string]string{
		"top --interval 1ms":                "--interval: 1ms is out of range; write 1s to 1h0m0s",
		"top now":                           `"now" is unexpected`,
		"rules suggest --since soon":        `--since: "soon" is not a valid duration`,
		"rules suggest --since 1ms":         `--since: "1ms" is not a valid duration`,
		"rules suggest --share 1%,half":     `--share: "half" is not a share; write for example 1% or 0.01`,
		"rules suggest --share 100%":        `--share: "100%" is not a share`,
		"rules suggest --share -1%":         `--share: "-1%" is not a share`,
		"rules suggest a b":                 "takes at most the id of a rule",
		"alerts silence":                    "takes the id of an alert, or a kind, not 0 arguments",
		"alerts silence drop --for ever":    `--for: "ever" is not a valid duration`,
		"alerts silence drop --for 31d":     `--for: "31d" is not a valid duration`,
		"alerts silence drop --for 1500ms":  `--for: "1500ms" is not a valid duration`,
		"alerts silense drop":               `"silense" is unknown; did you mean "silence"?`,
		"top --server http://x --output no": `--output: "no" is unknown`,
	} {
		got := command(t, "", strings.Fields(args)...)
		if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, want) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("weir %s: exit code %d, %q, want %q", args, got.code, got.stderr, want)
		}
	}
}

func TestSuggest(t *testing.T) {
	r := serveStats(t, loginAndAPI)
	r.on(t, "rules", "suggest").want(t, 0, `\Ano traffic was recorded in the last 7d;`, "")
	r.on(t, "rules", "suggest", "login").want(t, 0, `\Ano traffic was recorded in the last 7d;`, "")
	r.busy(t)
	const early = `rule   tier  period  data  requests  denied      limit for 0.1 %  limit for 1 %
api    -     1m      48s   17        0 (0.0 %)    -                -
login  -     1m      48s   30        25 (83.3 %)  > 5              > 5
`
	if got := r.on(t, "rules", "suggest"); squeeze(got.stdout) != squeeze(early) {
		t.Errorf("from 48 s:\n%s%s", got.stdout, got.stderr)
	}
	r.pass(t, 60)
	const want = `rule   tier  period  data  requests  denied      limit for 0.1 %  limit for 1 %
api    -     1m      1m48s 17        0 (0.0 %)    100/1m burst 2   100/1m burst 2
login  -     1m      1m48s 30        25 (83.3 %)  > 5              > 5
`
	for args, want := range map[string]string{
		"":                               want,
		"api":                            want[:strings.LastIndex(want, "login")],
		"api --share 0.5,25% --since 1h": "rule  tier  period  data  requests  denied    limit for 50 %  limit for 25 %\napi   -     1m    1m48s  17        0 (0.0 %)  100/1m burst 1  100/1m burst 1\n",
	} {
		if got := r.on(t, append([]string{"rules", "suggest"}, strings.Fields(args)...)...); got.code != 0 || got.stderr != "" || squeeze(got.stdout) != squeeze(want) {
			t.Errorf("weir rules suggest %s: exit code %d\n%s%s\nwant\n%s", args, got.code, got.stdout, got.stderr, want)
		}
	}
	var all struct{ Rules []httpapi.SuggestAnswer }
	got := r.on(t, "rules", "suggest", "--json", "--share", "0.1%")
	if err := json.Unmarshal([]byte(got.stdout), &all); err != nil || len(all.Rules) != 2 || all.Rules[1].Suggestions[0].Targets[0] != (httpapi.SuggestTarget{Share: 0.001, Units: 5, Above: true}) {
		t.Errorf("%v\n%s", err, got.stdout)
	}
	r.on(t, "rules", "suggest", "nobody").want(t, 1, "", `^weir: there is no such rule; weir rules list shows all rules$`)
	// What was longer ago than is asked for does not count.
	r.pass(t, 7200)
	r.on(t, "rules", "suggest", "--since", "30m").want(t, 0, `\Ano traffic was recorded in the last 30m;`, "")
}

// squeeze makes no difference between one space and several.
func squeeze(text string) string { return regexp.MustCompile(` +`).ReplaceAllString(text, " ") }

func TestAlerts(t *testing.T) {
	r := serveStats(t, loginAndAPI)
	r.on(t, "alerts").want(t, 0, `\Ano alert is firing\n\z`, "")
	until := time.UnixMicro(r.now.Load()).Add(2 * time.Hour).Format(time.DateTime)
	r.on(t, "alerts", "silence", "denied", "--for", "2h", "--comment", "load\ttest").want(t, 0, `\Adenied is silenced until `+until+`\n\z`, "")
	r.on(t, "alerts").want(t, 0, `\Ano alert is firing\n\nsilenced +until +by +comment\ndenied +`+until+` +\S+ +load\x{FFFD}test\n\z`, "")
	r.on(t, "alerts", "--json").want(t, 0, `"comment": "load\\ttest"`, "")
	r.on(t, "alerts", "silence", "denied", "--for", "0").want(t, 0, `\Adenied is no longer silenced\n\z`, "")
	r.on(t, "alerts").want(t, 0, `\Ano alert is firing\n\z`, "")
	r.on(t, "alerts", "silence", "shadow:login", "--output", "json").want(t, 0, `"id": "shadow:login"`, "")
	r.on(t, "alerts", "silence", "nobody").want(t, 1, "", `^weir: id: unknown kind of alert "nobody"; send an id`)
}

func TestPrintAlerts(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.Local)
	a := func(id string) alert.Alert {
		return alert.Alert{ID: id, StartsAt: at, EndsAt: at.Add(time.Minute), Summary: "so \x1b[2J it is"}
	}
	silenced := a("hot_key:ip:\x07")
	silenced.Silenced = true
	over := a("degraded")
	over.EndsAt, over.QuietSince = time.Time{}, at.Add(time.Second)
	var b strings.Builder
	printAlerts(&b, &httpapi.AlertsAnswer{Active: []alert.Alert{over, a("drop"), silenced}, Past: []alert.Alert{a("slow")}})
	const want = "firing since summary\n" +
		"drop 2030-01-02 03:04:05 so \uFFFD[2J it is\n" +
		"hot_key:ip:\uFFFD 2030-01-02 03:04:05 so \uFFFD[2J it is (silenced)\n" +
		"\nended since until summary\n" +
		"degraded 2030-01-02 03:04:05 2030-01-02 03:04:06 so \uFFFD[2J it is\n" +
		"\nresolved since until summary\n" +
		"slow 2030-01-02 03:04:05 2030-01-02 03:05:05 so \uFFFD[2J it is\n"
	if squeeze(b.String()) != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
}

// A server that answers nonsense is found out.
func TestSuggestNonsense(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"rules":[{"rule":"x"}],"suggestions":[{"targets":[]}]}`)
	}))
	defer s.Close()
	command(t, "", "rules", "suggest", "--server", s.URL).want(t, 1, "", "but the response is not from weir")
}
