package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/expression"
)

// millisOf is a wait as an answer has it.
func millisOf(n int64) *int64 { return &n }

func TestCheck(t *testing.T) {
	s := newStand(t, Options{}).serve()
	const login = `{"ip":"198.51.100.7","method":"POST","path":"/api/login?next=/"}`
	var a CheckAnswer
	for i := range 2 {
		a = CheckAnswer{}
		r := s.call("POST /v1/check", login).want(t, 200, &a)
		if r.Header.Get("Content-Type") != "application/json" || !strings.HasSuffix(string(r.body), "}\n") {
			t.Errorf("the answer is of type %s: %s", r.Header.Get("Content-Type"), r.body)
		}
		if !a.Allowed || a.Rule != "login" || a.Limit != 2 || a.Remaining != int64(1-i) || a.RetryAfterMS == nil || *a.RetryAfterMS != 0 {
			t.Fatalf("check %d: %s", i, r.body)
		}
	}
	s.now.Add(1_000_500)
	a = CheckAnswer{}
	s.call("POST /v1/check", login).want(t, 200, &a)
	want := CheckAnswer{
		Reason: "limits", Status: 429, Rule: "login", Code: 10007, Message: "too many logins",
		Limit: 2, ResetAt: begin.Unix() + 61, ResetAfterMS: 59_000, RetryAfterMS: millisOf(59_000), Version: 2,
		Results: []LimitAnswer{{
			Rule: "login", Key: "ip:198.51.100.7", Algorithm: "sliding_log", Policy: "2/1m", Asked: true, Cost: 1,
			Limit: 2, ResetAt: begin.Unix() + 61, ResetAfterMS: 59_000, RetryAfterMS: millisOf(59_000),
		}},
	}
	// 58.9995 s are left, which is rounded up: to come after 58 999 ms would be in vain.
	if got, want := dump(t, a), dump(t, want); got != want {
		t.Errorf("denied:\n%s, want\n%s", got, want)
	}
}

// A rule that counts dollars tells them beside their millionths, and names its limit in the message.
func TestCheckInDollars(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Rules: openRules(t, "rules: [{id: spend, key: user, limit: 20usd/day}]")}}).serve()
	check := func(micros string) string {
		return string(s.call("POST /v1/check", `{"user":"ann","cost":{"usd":`+micros+`}}`).want(t, 200, nil).body)
	}
	if got := check("18500000"); strings.Count(got, `"display":{"policy":"20usd/day","cost":"$18.50","limit":"$20.00","remaining":"$1.50"}`) != 2 ||
		!strings.Contains(got, `"delay_ms":0,"display":{"policy":"20usd/day","cost":"$18.50","limit":"$20.00","remaining":"$1.50"},"degraded"`) {
		t.Errorf("allowed: %s", got)
	}
	if got := check("1500001"); !strings.Contains(got, `"message":"The request costs $1.500001, and the limit spend of $20.00/day has $1.50 left; try again in `) {
		t.Errorf("denied: %s", got)
	}
	var keys KeysAnswer
	if s.call("GET /v1/keys?key=user:ann", "").want(t, 200, &keys); keys.Results[0].Display == nil || keys.Results[0].Display.Remaining != "$1.50" {
		t.Errorf("keys: %+v", keys.Results)
	}
}

// A check has no body, so fields of one are missing. What the caller sends and no cost can be made of is an error.
func TestCheckCosts(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Rules: openRules(t, `rules:
  - {id: body, key: user, limit: 100/1m, cost: {estimate: request.json.n, default: 7}, match: {path: /body, when: "request.json.n > 1"}}
  - {id: header, key: user, limit: 100/1m, cost: {estimate: 'int(request.headers["x-n"])', default: 7}, match: {path: /header}}
`)}}).serve()
	for body, want := range map[string]string{
		`{"user":"a","path":"/body"}`:                            `"cost":7`,
		`{"user":"a","path":"/body","cost":3}`:                   `"cost":3`,
		`{"user":"a","path":"/header"}`:                          `"cost":7`,
		`{"user":"a","path":"/header","headers":{"x-n":"9"}}`:    `"cost":9`,
		`{"user":"a","path":"/header","headers":{"x-n":"nine"}}`: `"detail":"The cost of the request cannot be computed: a value cannot be converted."`,
		`{"user":"a","path":"/header","headers":{"x-n":"-9"}}`:   `"detail":"The cost of the request cannot be computed: the result is negative, or too large."`,
	} {
		status := 200
		if strings.Contains(want, "detail") {
			status = 400
		}
		for _, call := range []string{"POST /v1/check", "POST /v1/reserve"} {
			if r := s.call(call, body).want(t, status, nil); !strings.Contains(string(r.body), want) {
				t.Errorf("%s %s: %s", call, body, r.body)
			}
		}
	}
}

func dump(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCheckAnswers(t *testing.T) {
	for _, c := range []struct{ name, body, want, before string }{
		{"nothing is known", `{}`, `"allowed":true,"reason":"limits","limit":0`, ""},
		{"exempt", `{"user":"healthcheck","path":"/api/x"}`, `"allowed":true,"reason":"exempt"`, ""},
		{"blocked", `{"ip":"::ffff:203.0.113.66"}`, `"allowed":false,"reason":"blocked","status":403,"message":"This client is blocked.","limit":0,"remaining":0,"reset_at":0,"reset_after_ms":0,"retry_after_ms":null`, ""},
		{"too dear", `{"ip":"192.0.2.1","path":"/api/login","method":"post","cost":3}`, `"status":429,"rule":"login","code":10007,"message":"too many logins","limit":2,"remaining":2,"reset_at":1767225601,"reset_after_ms":0,"retry_after_ms":null`, ""},
		{"a tier", `{"user":"bob","path":"/api/x","tier":"pro"}`, `"policy":"1000/1m"`, ""},
		{"a priority", `{"user":"bob","path":"/api/x","priority":"low"}`, `"priority":"low","degraded":false`, ""},
		{"the usual priority", `{"user":"bob","path":"/api/x","priority":"normal"}`, `"delay_ms":0,"degraded":false`, ""},
		{"unlimited", `{"user":"carol","path":"/api/x","tier":"enterprise"}`, `"results":[]`, ""},
		{"a header in small letters", `{"headers":{"x-tenant":"acme"}}`, `"rule":"tenant","key":"header:X-Tenant:acme","algorithm":"token_bucket","policy":"50/1m","allowed":true,"shadow":true,"asked":true,"cost":1`, ""},
		{"an address with a zone", `{"ip":"fe80::1%eth0","path":"/api/login","method":"POST"}`, `"key":"ip:fe80::/64"`, ""},
		{"a delay", `{"path":"/queue"}`, `"delay_ms":0`, ""},
		{"a longer one", `{"path":"/queue"}`, `"delay_ms":100,"degraded":false`, `{"path":"/queue"}`},
		{"null", `{"user":null,"headers":null}`, `"results":[]`, ""},
		{"space around it", " \r\n{}\t\n ", `"allowed":true`, ""},
		{"a key that needs escapes", `{"user":"<é\"\u2028>","path":"/api/x"}`, `"key":"user:\u003cé\"\u2028\u003e"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, Options{})
			if c.before != "" {
				s.call("POST /v1/check", c.before).want(t, 200, nil)
			}
			if r := s.call("POST /v1/check", c.body, "Content-Type: text/plain").want(t, 200, &CheckAnswer{}); !strings.Contains(string(r.body), c.want) {
				t.Errorf("%s gave %s, want %s", c.body, r.body, c.want)
			}
		})
	}
}

// Each priority has its share, and an unknown one is a mistake of the caller.
func TestCheckShares(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Rules: openRules(t, "rules: [{id: api, key: user, algorithm: fixed_window, limit: 4/1h, shares: {low: 50%}}]")}})
	for _, c := range []struct {
		priority  string
		allowed   bool
		remaining int64
		leave     int64
	}{{"low", true, 1, 2}, {"low", true, 0, 2}, {"low", false, 0, 2}, {"critical", true, 1, 0}, {"", true, 0, 0}} {
		var a CheckAnswer
		s.call("POST /v1/check", `{"user":"alice","priority":"`+c.priority+`"}`).want(t, 200, &a)
		if a.Allowed != c.allowed || a.Remaining != c.remaining || a.Priority != c.priority || a.Results[0].Leave != c.leave {
			t.Errorf("%q: %+v", c.priority, a)
		}
		if want := "The share of low requests in the limit api is used up; try again in "; !a.Allowed && !strings.HasPrefix(a.Message, want) {
			t.Errorf("%q: %s", c.priority, a.Message)
		}
	}
	for _, endpoint := range []string{"check", "reserve"} {
		for _, priority := range []string{"urgent", "Low", strings.Repeat("x", 5000)} {
			p := s.call("POST /v1/"+endpoint, `{"user":"alice","priority":"`+priority+`"}`).wantProblem(t, fault.BadField)
			if p.Field != "priority" || len(p.Detail) > 200 || strings.HasSuffix(p.Detail, "?.") {
				t.Errorf("%.20s: %+v", priority, p)
			}
		}
	}
	if p := s.call("POST /v1/check", `{"priority":"mediocre"}`).wantProblem(t, fault.BadField); !strings.Contains(p.Detail, "critical, high, normal, low") {
		t.Error(p.Detail)
	}
}

func TestCheckPeekChargesNothing(t *testing.T) {
	s := newStand(t, Options{})
	var a CheckAnswer
	for range 5 {
		s.call("POST /v1/check", `{"ip":"192.0.2.1","path":"/api/login","method":"POST","peek":true}`).want(t, 200, &a)
		if !a.Allowed || a.Remaining != 2 {
			t.Fatalf("after peeks: %+v", a)
		}
	}
}

func TestCheckProblems(t *testing.T) {
	s := newStand(t, Options{})
	long := func(n int) string { return strings.Repeat("x", n) }
	entries := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"k%d":"v"`, i)
		}
		return b.String()[1:]
	}
	for _, c := range []struct {
		name, body string
		kind       *fault.Kind
		field      string
		words      string
	}{
		{"nothing", ``, fault.BadBody, "", "empty"},
		{"a list", `[]`, fault.BadBody, "", "object"},
		{"null", `null`, fault.BadBody, "", "object"},
		{"half", `{"ip":"192.0.2.1"`, fault.BadBody, "", "too early"},
		{"rubbish", `{"ip":}`, fault.BadBody, "", "at byte 7"},
		{"more behind", `{} {}`, fault.BadBody, "", "at byte 4"},
		{"rubbish behind", "{}\nx", fault.BadBody, "", "at byte 4"},
		{"not UTF-8", "{\"user\":\"\xff\"}", fault.BadBody, "", "UTF-8"},
		{"deep", `{"headers":` + strings.Repeat("[", 20000), fault.BadBody, "", ""},
		{"a near name", `{"usr":"alice"}`, fault.BadField, "usr", "did you mean user?"},
		{"a far name", `{"quux":1}`, fault.BadField, "quux", "use ip, user"},
		{"the wrong kind", `{"cost":"1"}`, fault.BadField, "cost", "send a whole number"},
		{"a fraction", `{"cost":1.5}`, fault.BadField, "cost", "send a whole number"},
		{"a fraction of a dollar", `{"cost":{"usd":1.5}}`, fault.BadField, "cost", "1.50 dollars are 1500000"},
		{"a huge number", `{"cost":1e30}`, fault.BadField, "cost", "send a whole number"},
		{"a number for a text", `{"user":5}`, fault.BadField, "user", "send a string"},
		{"a text for an object", `{"headers":"x"}`, fault.BadField, "headers", "send an object"},
		{"a text for a bool", `{"peek":"yes"}`, fault.BadField, "peek", "send true or false"},
		{"negative", `{"cost":-1}`, fault.BadField, "cost", "negative"},
		{"too dear", `{"cost":1125899906842625}`, fault.BadField, "cost", "1125899906842624"},
		{"not an address", `{"ip":"localhost"}`, fault.BadField, "ip", "without a port"},
		{"a port", `{"ip":"192.0.2.1:80"}`, fault.BadField, "ip", "without a port"},
		{"a relative path", `{"path":"api"}`, fault.BadField, "path", "slash"},
		{"a query alone", `{"path":"?a=b"}`, fault.BadField, "path", "slash"},
		{"a long user", `{"user":"` + long(manage.MaxWord+1) + `"}`, fault.BadField, "user", "1025 bytes"},
		{"a long path", `{"path":"/` + long(manage.MaxText) + `"}`, fault.BadField, "path", "8193 bytes"},
		{"a long value", `{"query":{"a":"` + long(manage.MaxText+1) + `"}}`, fault.BadField, "query", ""},
		{"a long name", `{"cookies":{"` + long(manage.MaxWord+1) + `":""}}`, fault.BadField, "cookies", ""},
		{"many headers", `{"headers":{` + entries(manage.MaxEntries+1) + `}}`, fault.BadField, "headers", "101 entries"},
		{"many attributes", `{"attributes":{` + entries(manage.MaxEntries+1) + `}}`, fault.BadField, "attributes", "101 entries"},
		{"a header twice", `{"headers":{"x-a":"1","X-A":"2"}}`, fault.BadField, "headers", "X-A is given twice"},
		{"too long", `{"user":"` + long(MaxCheckBody) + `"}`, fault.TooLarge, "", "65536"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := s.call("POST /v1/check", c.body).wantProblem(t, c.kind, c.words)
			if p.Field != c.field {
				t.Errorf("the field is %q, want %q", p.Field, c.field)
			}
			if len(p.Detail) > manage.MaxDetail {
				t.Errorf("the detail has %d bytes", len(p.Detail))
			}
		})
	}
	// What is just short enough passes.
	for _, body := range []string{
		`{"user":"` + long(manage.MaxWord) + `","path":"/` + long(manage.MaxText-1) + `","cost":1125899906842624}`,
		`{"headers":{` + entries(manage.MaxEntries) + `}}`,
		`{}` + strings.Repeat(" ", MaxCheckBody-2),
	} {
		s.call("POST /v1/check", body).want(t, 200, nil)
	}
}

// A body whose length is not known beforehand is bounded, too, and one that breaks off
// is no server's fault.
func TestCheckBodies(t *testing.T) {
	s := newStand(t, Options{}).serve()
	send := func(body io.Reader) *reply {
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.server.URL+"/v1/check", struct{ io.Reader }{body})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := s.server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return &reply{answer, text}
	}
	send(strings.NewReader(`{}`+strings.Repeat(" ", 1<<20))).wantProblem(t, fault.TooLarge)
	send(strings.NewReader(`{}`)).want(t, 200, nil)

	r := httptest.NewRequest("POST", "/v1/check", io.MultiReader(strings.NewReader(`{"user"`), broken{}))
	r.Host = "localhost"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	(&reply{w.Result(), w.Body.Bytes()}).wantProblem(t, fault.BadBody, "send it again")
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestCheckWhileTheStoreIsLost(t *testing.T) {
	s := newStand(t, Options{})
	s.store.lost.Store(true)
	var a CheckAnswer
	s.call("POST /v1/check", `{"user":"alice","path":"/api/x"}`).want(t, 200, &a)
	if !a.Allowed || !a.Degraded || a.Reason != "limits" || len(a.Results) != 1 || a.Results[0].Asked || a.Results[0].ResetAt != 0 {
		t.Errorf("open: %+v", a)
	}
	a = CheckAnswer{}
	s.call("POST /v1/check", `{"path":"/safe"}`).want(t, 200, &a)
	if a.Allowed || !a.Degraded || a.Reason != "unavailable" || a.Status != 503 || a.RetryAfterMS == nil || *a.RetryAfterMS != 5000 || a.Rule != "safe" {
		t.Errorf("closed: %+v", a)
	}
}

func TestCheckOfWhoHasLeft(t *testing.T) {
	s := newStand(t, Options{})
	s.store.lost.Store(true) // a store in memory does not look at the context
	const body = `{"ip":"192.0.2.1","method":"POST","path":"/api/login"}`
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/check", strings.NewReader(body))
	r.Host = "localhost"
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, r); w.Code != statusClientGone || w.Body.Len() > 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.deadline = time.Unix(1, 0)
	if answer := s.call("POST /v1/check", body); answer.Header.Get("Retry-After") != "1" {
		t.Errorf("%v", answer.Header)
	} else {
		answer.wantProblem(t, fault.Busy)
	}
}

// manyRules are one more than a request may be subject to.
func manyRules() string {
	var rules strings.Builder
	rules.WriteString("rules:\n")
	for i := range weir.MaxOps + 1 {
		fmt.Fprintf(&rules, "  - {id: r%d, key: user, limit: %d/1m}\n", i, i+1)
	}
	return rules.String()
}

// More limits than one request may be asked for are the rules' fault, and said so.
func TestCheckThatCannotBeJudged(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Rules: openRules(t, manyRules())}})
	s.call("POST /v1/check", `{"user":"alice"}`).wantProblem(t, fault.InvalidRequest, "at most 64")
}

// The answer is written by hand, just as the library would write the types that stand for it.
func TestAnswerAsTheLibraryWritesIt(t *testing.T) {
	stand := newStand(t, Options{})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "login", "user:alice", "a<b>&c", "\x7f", "\u2028", `"\`}))
		number := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1}))
		yes := rapid.Bool()
		some := rapid.OneOf(rapid.Map(rapid.Int64Range(0, 1<<53), func(n int64) time.Duration { return time.Duration(n) }), rapid.SampledFrom([]time.Duration{0, weir.Never}))
		at := rapid.Map(rapid.Int64Range(0, 1<<53), func(n int64) weir.Micros { return weir.Micros(n) })
		var v engine.Verdict
		if err := stand.engine.Check(stand.t.Context(), &rule.Request{User: "alice", Path: rapid.SampledFrom([]string{"/", "/api/items"}).Draw(t, "path")}, &v); err != nil {
			t.Fatal(err)
		}
		v.Allowed, v.Delay, v.RetryAfter, v.Version = yes.Draw(t, "allowed"), some.Draw(t, "delay"), some.Draw(t, "retry"), number.Draw(t, "version")
		v.Unheld, v.Priority = yes.Draw(t, "unheld"), rapid.SampledFrom([]rule.Priority{rule.Low, rule.Normal, rule.High}).Draw(t, "priority")
		if yes.Draw(t, "held") {
			v.Hold, v.HoldExpires = weir.HoldID{1}, at.Draw(t, "expires")
		}
		if yes.Draw(t, "lost") {
			v.Degraded = errLost
		}
		for i := range v.Results {
			r := &v.Results[i]
			r.Key, r.Cost, r.Leave, r.Excess, r.Limit, r.Remaining = text.Draw(t, "key"), number.Draw(t, "cost"), number.Draw(t, "leave"), number.Draw(t, "excess"), number.Draw(t, "limit"), number.Draw(t, "remaining")
			r.Allowed, r.Shadow, r.Soft, r.Penalty, r.Asked, r.Local = yes.Draw(t, "allowed"), yes.Draw(t, "shadow"), yes.Draw(t, "soft"), yes.Draw(t, "penalty"), yes.Draw(t, "asked"), yes.Draw(t, "local")
			r.ResetAt, r.ResetAfter, r.RetryAfter, r.Delay = at.Draw(t, "reset at"), some.Draw(t, "reset"), some.Draw(t, "retry"), some.Draw(t, "delay")
			if yes.Draw(t, "overridden") {
				r.Override = &engine.Override{ID: text.Draw(t, "id"), Ends: at.Draw(t, "ends").Time()}
			}
		}
		var w writer
		manage.TellVerdict(&w, &v, true)
		var a CheckAnswer
		read := json.NewDecoder(bytes.NewReader(w.out))
		read.DisallowUnknownFields()
		if err := read.Decode(&a); err != nil {
			t.Fatalf("%v: %s", err, w.out)
		}
		if want, err := json.Marshal(a); err != nil || string(want) != string(w.out) {
			t.Fatalf("%s, want %s %v", w.out, want, err)
		}
	})
}

// Whatever is sent, the answer is JSON and no server error.
func FuzzCheckBody(f *testing.F) {
	for _, seed := range []string{
		ordinary, `{}`, `{"cost":1e9}`, `{"headers":{"x-a":"1"}}`, `{"ip":"::1%x","path":"/%zz"}`, `{"path":"/a/../b;c","host":"[::1]:80"}`,
		`{"user":"\ud800","method":"\u0000"}`, `[{}]`, `{"usr":1}`, "\xef\xbb\xbf{}", `{"peek":true,"cost":0}`,
	} {
		f.Add([]byte(seed))
	}
	s := newStand(f, Options{})
	f.Fuzz(func(t *testing.T, body []byte) {
		r := direct(s, "POST", "/v1/check", string(body))
		if r.StatusCode >= 500 || !json.Valid(r.body) {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
		if r.StatusCode == 200 {
			var a CheckAnswer
			if err := json.Unmarshal(r.body, &a); err != nil || a.Results == nil {
				t.Errorf("%v in %s", err, r.body)
			}
		}
	})
}
