package httplimit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

func TestDenial(t *testing.T) {
	for _, c := range []struct {
		name, rules string
		requests    int
		cost        int64
		lost        bool
		status      int
		retry       string
		body        string
	}{
		{"default", "rules: [{id: api, key: ip, algorithm: sliding_log, limit: 1/90s}]", 2, 0, false, 429, "90",
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"detail":"The limit api is used up; try again in 90 s.","rule":"api","violated-policies":["api"],"retry_after":90}`},
		{"the rule's own words", `rules: [{id: login, key: ip, limit: 1/1m, deny: {status: 403, code: 10007, message: 'too many <logins>, "friend"'}}]`, 2, 0, false, 403, "60",
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":403,"detail":"too many \u003clogins\u003e, \"friend\"","rule":"login","code":10007,"violated-policies":["login"],"retry_after":60}`},
		{"the first rule speaks, with the longest wait", `
rules:
  - {id: a, key: ip, limit: 1/1m}
  - {id: roomy, key: ip, limit: 100/1m}
  - {id: b, key: ip, algorithm: sliding_log, limits: [1/1h, 1/1d]}
`, 2, 0, false, 429, "86400",
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"detail":"The limit a is used up; because of another limit, try again in 86400 s.","rule":"a","violated-policies":["a","b:1h","b:1d"],"retry_after":86400}`},
		{"never", "rules: [{id: api, key: ip, limit: 5/1m}]", 1, 6, false, 429, "",
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"detail":"The request costs more than the limit api allows at once.","rule":"api","violated-policies":["api"]}`},
		{"blocked", "{rules: [{id: api, key: ip, limit: 5/1m}], block: {ip: [203.0.113.0/24]}}", 1, 0, false, 403, "",
			`{"type":"about:blank","title":"Forbidden","status":403,"detail":"This client is blocked."}`},
		{"closed", "rules: [{id: a, key: ip, limit: 5/1m}, {id: b, key: ip, limit: 6/1m, on_failure: closed, deny: {status: 429}}]", 1, 0, true, 503, "5",
			`{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Temporary Reduced Capacity","status":503,"detail":"The rate limiter is unavailable; try again soon.","rule":"b","retry_after":5}`},
		{"local", "rules: [{id: a, key: ip, limit: 1/1m, on_failure: local}]", 2, 0, true, 429, "60",
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"detail":"The limit a is used up; try again in 60 s.","rule":"a","violated-policies":["a"],"retry_after":60}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.rules, Options{Cost: func(*http.Request) int64 { return c.cost }})
			b.store.lost.Store(c.lost)
			for range c.requests - 1 {
				if w := b.ask(); w.Code != 200 {
					t.Fatalf("denied too early: %d %s", w.Code, w.Body)
				}
			}
			w := b.ask()
			h := w.Header()
			if w.Code != c.status || h.Get("Retry-After") != c.retry || strings.TrimSuffix(w.Body.String(), "\n") != c.body {
				t.Errorf("got %d, Retry-After %q\n%swant %d, %q\n%s", w.Code, h.Get("Retry-After"), w.Body, c.status, c.retry, c.body)
			}
			if h.Get("Content-Type") != "application/problem+json" || h.Get("Cache-Control") != "no-store" {
				t.Errorf("%v", h)
			}
			if got := h.Get("X-RateLimit-Degraded"); (got == "1") != c.lost {
				t.Errorf("degraded is %q", got)
			}
			var problem map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || problem["status"] != float64(w.Code) {
				t.Errorf("%v in %s", err, w.Body)
			}
			if int(b.served.Load()) != c.requests-1 {
				t.Errorf("the handler was called %d times", b.served.Load())
			}
		})
	}
}

// The first rule speaks also when waiting would help it alone.
func TestDenialThatWaitingDoesNotHelp(t *testing.T) {
	cost := int64(2)
	b := newBench(t, "rules: [{id: a, key: ip, limit: 4/1m}, {id: b, key: ip, limit: 2/1m, burst: 3}]", Options{Cost: func(*http.Request) int64 { return cost }})
	b.ask()
	cost = 4
	w := b.ask()
	want := `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"detail":"The limit a is used up, and waiting does not help: the request costs more than another limit allows at once.","rule":"a","violated-policies":["a","b"]}`
	if got := strings.TrimSpace(w.Body.String()); got != want || w.Header().Get("Retry-After") != "" {
		t.Errorf("Retry-After %q, got\n%s\nwant\n%s", w.Header().Get("Retry-After"), got, want)
	}
}

// The store's trouble is never the client's: an open rule passes, and says so.
func TestOpen(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: ip, limit: 1/1h}]", Options{})
	b.store.lost.Store(true)
	for range 3 {
		if w := b.ask(); w.Code != 200 || limits(w.Header()) != "X-Ratelimit-Degraded: 1" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	}
}

// A Deny function finds the headers set, and may change what is told.
func TestCustomDenial(t *testing.T) {
	b := newBench(t, "rules: [{id: login, key: ip, limit: 1/1h, deny: {code: 7}}]", Options{
		Deny: func(w http.ResponseWriter, r *http.Request, d *Denial) {
			if r.URL.Path == "/teapot" {
				d.Status, d.Detail = http.StatusTeapot, "Over "+d.Verdict.Speaker().Rule.ID+"."
				d.Write(w)
				return
			}
			http.Error(w, d.Rule, d.Status)
		},
	})
	b.ask()
	w := b.ask()
	if w.Code != 429 || w.Body.String() != "login\n" || w.Header().Get("Retry-After") != "3600" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
	w = b.send(from("203.0.113.7:1", "GET", "/teapot"))
	if w.Code != 418 || !strings.Contains(w.Body.String(), `"status":418,"detail":"Over login."`) {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

// A request that cannot be checked does not count as a failure of the store, and never
// gets a 500.
func TestFail(t *testing.T) {
	b := newBench(t, "rules: [{id: a, key: ip, limit: 5/1h}]", Options{})
	for _, c := range []struct {
		err    error
		status int
		retry  string
	}{
		{&weir.InvalidError{Field: "ops", Reason: "65 limits in one request are too many"}, 400, ""},
		{context.Canceled, 499, ""},
		{context.DeadlineExceeded, 503, "5"},
		{errors.New("something else"), 503, "5"},
	} {
		b.store.Store = failing{c.err}
		b.engine.Install(tableOf(t, "rules: [{id: a, key: ip, limit: 5/1h, on_failure: closed}]"), 2)
		w := httptest.NewRecorder()
		p := new(pass)
		p.denial.Denial = engine.DescribeError(&p.verdict, c.err)
		b.stop(w, from("203.0.113.7:1", "GET", "/"), p, nil, c.err)
		if w.Code != c.status || w.Header().Get("Retry-After") != c.retry {
			t.Errorf("%v: %d, Retry-After %q", c.err, w.Code, w.Header().Get("Retry-After"))
		}
		if w := b.ask(); w.Code == 500 || w.Code == 200 {
			t.Errorf("%v: %d", c.err, w.Code)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if w := b.send(from("203.0.113.7:1", "GET", "/").WithContext(ctx)); w.Code != 499 {
		t.Errorf("a client that is gone: %d", w.Code)
	}
	if b.served.Load() != 0 {
		t.Error("an unjudged request was served")
	}
}

type failing struct{ err error }

func (f failing) Take(context.Context, []weir.Decision, ...weir.Op) ([]weir.Decision, error) {
	return nil, f.err
}
func (f failing) Peek(context.Context, []weir.Decision, ...weir.Op) ([]weir.Decision, error) {
	return nil, f.err
}
func (f failing) Refund(context.Context, ...weir.Op) error { return f.err }
func (f failing) Reset(context.Context, ...weir.Op) error  { return f.err }

// Any words of an application make JSON.
func FuzzProblem(f *testing.F) {
	f.Add("a", "b", "c", 1)
	f.Add("\x00\xff\"\\", "</script>", "ä\u2028", -1)
	f.Fuzz(func(t *testing.T, detail, rule, policy string, code int) {
		d := Denial{Status: 429, Denial: engine.Denial{Detail: detail, Rule: rule, Code: code, Policies: []string{policy, rule}, RetryAfter: time.Second}}
		var got, want map[string]any
		if err := json.Unmarshal(d.append(nil), &got); err != nil {
			t.Fatal(err)
		}
		library, err := json.Marshal(map[string]any{"detail": detail, "rule": rule, "violated-policies": []string{policy, rule}})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(library, &want); err != nil {
			t.Fatal(err)
		}
		for name, value := range want {
			if a, b := jsonOf(got[name]), jsonOf(value); a != b && value != "" {
				t.Errorf("%s: %s, want %s", name, a, b)
			}
		}
	})
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// A verdict that says nothing is still answered.
func TestDescribeNothing(t *testing.T) {
	if d := Describe(&engine.Verdict{}); d.Status != 429 || d.Wait() != 0 {
		t.Errorf("%+v", d)
	}
}

// What is only reserved is said in the body and in the headers.
func TestDenialOfWhatIsReserved(t *testing.T) {
	now := weir.MicrosOf(begin)
	e := testkit.Must(engine.New(engine.Options{Store: memory.New(memory.Options{Clock: func() weir.Micros { return now }})}))(t)
	defer e.Close()
	e.Install(tableOf(t, "rules: [{id: budget, key: global, algorithm: fixed_window, limit: 10/1h}]"), 1)
	var v engine.Verdict
	for range 2 {
		testkit.OK(t, e.Reserve(t.Context(), &rule.Request{Cost: 6}, time.Minute, &v))
	}
	w := httptest.NewRecorder()
	WriteDenial(w, &v, RateLimit|RetryAfter)
	const want = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"detail":"The request lacks 2 units of the limit budget, which other requests have only reserved; try again in 1 s.","rule":"budget","violated-policies":["budget"],"reserved":2,"retry_after":1}`
	if strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("got %swant %s", w.Body, want)
	}
	if h := w.Header(); h.Get("RateLimit") != `"budget";r=4;t=1;weir-reserved=2` || h.Get("Retry-After") != "1" {
		t.Errorf("%v", h)
	}
}

// A client is told at which level it is denied, and never who is limited there.
func TestDenialOfALevel(t *testing.T) {
	e := testkit.Must(engine.New(engine.Options{Store: memory.New(memory.Options{Clock: func() weir.Micros { return weir.MicrosOf(begin) }})}))(t)
	defer e.Close()
	e.Install(tableOf(t, "{levels: [org, user], rules: [{id: budget, key: levels, algorithm: fixed_window, levels: {org: 1/1h, user: 1/1h}}]}"), 1)
	directory, problems, err := rule.ReadDirectory("", strings.NewReader(`{"client": "user:ann", "parent": "org:secret"}`+"\n"+`{"client": "user:bob", "parent": "org:secret"}`+"\n"+`{"client": "org:secret"}`))
	testkit.OK(t, errors.Join(err, problems.Err()))
	e.InstallClients(engine.Clients{Directory: directory})
	var v engine.Verdict
	for _, user := range []string{"ann", "bob"} {
		testkit.OK(t, e.Check(t.Context(), &rule.Request{User: user}, &v))
	}
	w := httptest.NewRecorder()
	WriteDenial(w, &v, XRateLimit|RateLimit|RetryAfter)
	const want = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"detail":"The limit budget of the level org is used up; try again in 3600 s.","rule":"budget","level":"org","violated-policies":["budget:org"],"retry_after":3600}`
	if strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("got %swant %s", w.Body, want)
	}
	if got := w.Header().Get("RateLimit-Policy"); got != `"budget:org";q=1;w=3600, "budget:user";q=1;w=3600` {
		t.Errorf("the limits are %s", got)
	}
	if said := fmt.Sprint(w.Header(), w.Body); strings.Contains(said, "secret") {
		t.Errorf("the client sees its organization: %s", said)
	}
}
