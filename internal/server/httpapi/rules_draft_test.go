package httpapi

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/redis"
)

// send is a body with these fields.
func send(t testing.TB, fields map[string]any) string {
	t.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestFormat(t *testing.T) {
	s := newStand(t, Options{})
	for _, c := range []struct {
		name, source, rule string
		want, json, code   string
	}{
		{"YAML", "id: a # x\nkey: ip\nlimit: 5/1m\n", "", "id: a # x\nkey: ip\nlimit: 5/1m\n", `{"id":"a","key":"ip","limit":"5/1m"}`, ""},
		{"JSON", `{"id":"a","key":"ip","limit":"5/1m"}`, "", "id: a\nkey: ip\nlimit: 5/1m\n", `{"id":"a","key":"ip","limit":"5/1m"}`, ""},
		{"a change in the form", "# mine\nid: a # x\nkey: ip\nlimit: 5/1m # was 3\n", `{"id":"a","key":"ip","limit":"6/1m"}`, "# mine\nid: a # x\nkey: ip\nlimit: 6/1m # was 3\n", `{"id":"a","key":"ip","limit":"6/1m"}`, ""},
		{"not valid yet", "id: a # x\n", `{"id":"a","limit":"5/"}`, "id: a # x\nlimit: 5/\n", `{"id":"a","limit":"5/"}`, "E007"},
		{"a new one", "", `{"mode":"shadow"}`, "mode: shadow\n", `{"mode":"shadow"}`, "E007"},
		{"unreadable", "id: a: b\n", `{"id":"c"}`, "id: a: b\n", "null", "E001"},
		{"only with the others", "id: a\nmatch: {path: /api/x}\nkey: user\nlimit: 200/1m\n", "", "id: a\nmatch: {path: /api/x}\nkey: user\nlimit: 200/1m\n", `{"id":"a","match":{"path":"/api/x"},"key":"user","limit":"200/1m"}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			fields := map[string]any{"source": c.source}
			if c.rule != "" {
				fields["rule"] = json.RawMessage(c.rule)
			}
			var a FormatAnswer
			s.call("POST /v1/rules/format", send(t, fields)).want(t, 200, &a)
			if a.Source != c.want || string(a.Rule) != c.json {
				t.Errorf("%q and %s", a.Source, a.Rule)
			}
			var codes []string
			for _, p := range a.Problems {
				codes = append(codes, p.Code)
			}
			if has := strings.Contains(strings.Join(codes, " "), c.code); !has || c.code == "" && rule.Problems(a.Problems).Err() != nil {
				t.Errorf("the problems are %v, want %q", a.Problems, c.code)
			}
		})
	}
	for _, body := range []string{`{"rule":[]}`, `{"rule":"id: a"}`, `{"rule":7}`} {
		if p := s.call("POST /v1/rules/format", body).wantProblem(t, fault.BadField, "not an object"); p.Field != "rule" {
			t.Errorf("%+v", p)
		}
	}
	if v, err := s.rules.Current(t.Context()); err != nil || v.Number != 2 {
		t.Errorf("something was written: %+v, %v", v, err)
	}
}

// An editor goes on while what is stored cannot be read.
func TestDraftsWhileRulesAreGone(t *testing.T) {
	g := &gone{Repository: openRules(t, testRules)}
	s := newStand(t, Options{Service: manage.Service{Rules: g}})
	judging, err := g.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.options.Editor.Installed(judging)
	g.err = errors.New("no route to host")
	s.call("POST /v1/rules/format", `{"source":"{id: new, key: ip, limit: 5/1m}"}`).want(t, 200, nil)
	s.call("POST /v1/rules/try", `{"source":"{id: new, key: ip, limit: 5/1m}"}`).want(t, 200, nil)
}

func TestTry(t *testing.T) {
	tryDrafts(t, newStand(t, Options{}))
}

func TestTryOnRedis(t *testing.T) {
	s := newStand(t, Options{})
	clock := func() weir.Micros { return weir.Micros(s.now.Load()) }
	store, err := redis.New(clientOf(t, testredis.Start(t)), redis.Options{Clock: clock, Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{Store: store, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	tryDrafts(t, newStand(t, Options{Service: manage.Service{Engine: e}}))
}

func tryDrafts(t *testing.T, s *stand) {
	t.Helper()
	const login = `{"ip":"192.0.2.9","method":"POST","path":"/api/login"}`
	try := func(source, request string) (a TryAnswer) {
		t.Helper()
		s.call("POST /v1/rules/try", send(t, map[string]any{"source": source, "request": json.RawMessage(request)})).want(t, 200, &a)
		return a
	}
	var spent CheckAnswer
	s.call("POST /v1/check", login).want(t, 200, nil)
	s.call("POST /v1/check", login).want(t, 200, &spent)
	if !spent.Allowed || spent.Remaining != 0 {
		t.Fatalf("%+v", spent)
	}
	// The draft sees what was used, and uses nothing.
	for range 3 {
		a := try("{id: login, match: {path: /api/login}, key: ip, algorithm: sliding_log, limit: 5/1m}", login)
		if a.InForce.Allowed || a.InForce.Rule != "login" || a.InForce.Code != 10007 || !a.Draft.Allowed || a.Draft.Remaining != 3 || a.Draft.Limit != 5 || a.Draft.Version != 2 {
			t.Fatalf("%+v", a)
		}
		if got := a.Draft.Results[0]; got.Policy != "5/1m" || got.Key != "ip:192.0.2.9" {
			t.Errorf("%+v", got)
		}
	}
	if a := try("{id: login, match: {path: /api/login}, key: ip, algorithm: sliding_log, limit: 1/1m, mode: shadow}", login); !a.Draft.Allowed || len(a.Draft.Results) != 1 || !a.Draft.Results[0].Shadow || a.Draft.Results[0].Allowed {
		t.Errorf("in shadow mode: %+v", a.Draft)
	}
	// A new one comes on top of the others.
	a := try("{id: new, match: {path: /api/**}, key: ip, limit: 1/1h}", `{"ip":"192.0.2.9","path":"/api/x","user":"alice","cost":2}`)
	if !a.InForce.Allowed || a.Draft.Allowed || a.Draft.Rule != "new" || len(a.InForce.Results) != 1 || len(a.Draft.Results) != 2 {
		t.Errorf("a new one: %+v", a)
	}
	// Lists hold for the draft, too.
	if a := try("{id: new, key: ip, limit: 1/1h}", `{"ip":"203.0.113.66"}`); a.Draft.Reason != "blocked" || a.InForce.Reason != "blocked" {
		t.Errorf("a blocked client: %+v", a)
	}
	if _, version := s.engine.Rules(); version != 2 {
		t.Errorf("version %d is in force", version)
	}
	p := s.call("POST /v1/rules/try", `{"source":"{id: a, xyz: ip, limit: 1/1s}"}`).wantProblem(t, fault.BadRules)
	if len(p.Problems) != 2 {
		t.Errorf("%+v", p)
	}
	if p := s.call("POST /v1/rules/try", `{"source":"{id: a, key: ip, limit: 1/1s}","request":{"ip":"x"}}`).wantProblem(t, fault.BadField); p.Field != "request.ip" {
		t.Errorf("%+v", p)
	}
	s.call("POST /v1/rules/try", `{"source":"{id: a, key: ip, limit: 1/1s}","request":{"usr":"x"}}`).wantProblem(t, fault.BadField, "user")
}

// Drafts are compiled as the rules in force are.
func TestTryHasTheOptions(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{RuleOptions: rule.Options{IPv6Bits: 48}}})
	var a TryAnswer
	s.call("POST /v1/rules/try", `{"source":"{id: a, key: ip, limit: 1/1s}","request":{"ip":"2001:db8:1:2::3"}}`).want(t, 200, &a)
	if got := a.Draft.Results[0].Key; got != "ip:2001:db8:1::/48" {
		t.Error(got)
	}
}
