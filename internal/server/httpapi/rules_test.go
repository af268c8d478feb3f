package httpapi

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	filerepo "github.com/weirhq/weir/internal/rules/repo/file"
	"github.com/weirhq/weir/rule"
)

func TestGetRules(t *testing.T) {
	s := newStand(t, Options{}).serve()
	var a RulesAnswer
	r := s.call("GET /v1/rules", "").want(t, 200, &a)
	var rules []rule.Rule
	if err := json.Unmarshal(a.Rules, &rules); err != nil || len(rules) != 5 || a.Version != 2 || r.Header.Get("Etag") != `"2"` {
		t.Fatalf("%v in %s", err, r.body)
	}
	if string(a.Exempt) != `{"user":["healthcheck"]}` || string(a.Block) != `{"ip":["203.0.113.66"]}` {
		t.Errorf("the lists are %s and %s", a.Exempt, a.Block)
	}
	for _, c := range []struct {
		target string
		accept string
		yaml   bool
	}{
		{"/v1/rules", "application/yaml", true}, {"/v1/rules", "text/html, Text/YAML;q=0.9, application/json", true},
		{"/v1/rules", "application/json, application/yaml", false}, {"/v1/rules", "*/*", false}, {"/v1/rules", "text/html", false},
		{"/v1/rules?format=yaml", "application/json", true}, {"/v1/rules?format=json", "application/yaml", false},
	} {
		r := s.call("GET "+c.target, "", "Accept: "+c.accept).want(t, 200, nil)
		if got := r.Header.Get("Content-Type"); (got == "application/yaml") != c.yaml || r.Header.Values("Vary")[1] != "Accept" {
			t.Errorf("%s, %s: it is %s", c.target, c.accept, got)
		}
		if c.yaml && string(r.body) != testRules {
			t.Errorf("the document is not as it was written: %s", r.body)
		}
	}
	s.call("GET /v1/rules?format=xml", "").wantProblem(t, fault.BadField, "yaml or json")
	s.call("GET /v1/rules?fromat=yaml", "").wantProblem(t, fault.BadField, "did you mean format?")
	s.call("GET /v1/rules?format=yaml&format=json", "").wantProblem(t, fault.BadField, "2 times")
	s.call("GET /v1/rules?%zz", "").wantProblem(t, fault.BadField)

	for _, c := range []struct {
		tag    string
		status int
	}{{`"2"`, 304}, {`W/"2"`, 304}, {`"1", "2"`, 304}, {`*`, 304}, {`"1"`, 200}, {`2`, 200}} {
		for _, path := range []string{"/v1/rules", "/v1/rules/login"} {
			r := s.call("GET "+path, "", "If-None-Match: "+c.tag)
			if r.StatusCode != c.status || r.Header.Get("Etag") != `"2"` || c.status == 304 && len(r.body) > 0 {
				t.Errorf("GET %s with %s: %d %v", path, c.tag, r.StatusCode, r.Header)
			}
		}
	}
}

func TestGetRulesOfAnEmptyDocument(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Rules: openRules(t, "rules: []\n")}})
	if r := s.call("GET /v1/rules", "").want(t, 200, nil); string(r.body) != `{"version":2,"in_force":2,"rules":[]}`+"\n" {
		t.Errorf("%s", r.body)
	}
}

func TestGetRule(t *testing.T) {
	s := newStand(t, Options{})
	var got rule.Rule
	s.call("GET /v1/rules/api", "").want(t, 200, &got)
	if got.ID != "api" || len(got.Tiers) != 2 {
		t.Errorf("%+v", got)
	}
	r := s.call("GET /v1/rules/api?format=yaml", "").want(t, 200, nil)
	const want = "id: api\nmatch:\n  path: /api/**\nkey: user\nlimit: 100/1m\ntiers:\n  enterprise: unlimited\n  pro: 1000/1m\n"
	if string(r.body) != want || r.Header.Get("Etag") != `"2"` {
		t.Errorf("%s", r.body)
	}
	// What was read can be sent back.
	s.call("PUT /v1/rules/api", string(r.body), `If-Match: "2"`).want(t, 200, nil)
	for _, id := range []string{"none", "API", "login%20", strings.Repeat("x", 5000)} {
		s.call("GET /v1/rules/"+id, "").wantProblem(t, fault.NoRule)
	}
}

func TestPostRule(t *testing.T) {
	s := newStand(t, Options{})
	var a WriteAnswer
	r := s.call("POST /v1/rules?summary=for+the+spring", "{id: search, match: {path: /search}, key: ip, limit: 20/1m}").want(t, 201, &a)
	if r.Header.Get("Location") != "/v1/rules/search" || r.Header.Get("Etag") != `"3"` {
		t.Errorf("the headers are %v", r.Header)
	}
	if a.Version.Number != 3 || a.Version.Author != "http" || a.Version.Summary != "for the spring" || a.Version.Source != "" || !a.CommentsKept {
		t.Errorf("%+v", a)
	}
	// It is in force when the answer is there.
	var checked CheckAnswer
	s.call("POST /v1/check", `{"ip":"192.0.2.1","path":"/search"}`).want(t, 200, &checked)
	if checked.Rule != "search" || checked.Version != 3 {
		t.Errorf("the rule is not in force: %+v", checked)
	}
	if r := s.call("GET /v1/rules?format=yaml", ""); !strings.Contains(string(r.body), "# logins") || !strings.Contains(string(r.body), "# refills") {
		t.Errorf("comments are lost: %s", r.body)
	}
	s.call("POST /v1/rules", `{"id":"search","key":"user","limit":"1/1s"}`).wantProblem(t, fault.RuleExists, "PUT /v1/rules/search")
	p := s.call("POST /v1/rules", "{id: other, key: ip, limit: 1/1s}", `If-Match: "2"`).wantProblem(t, fault.VersionConflict, `If-Match: "3"`)
	if p.Version != 3 {
		t.Errorf("the problem names version %d", p.Version)
	}
	s.call("POST /v1/rules", "{id: other, key: ip, limit: 1/1s}", `If-Match: "3"`).want(t, 201, nil)
}

func TestRulesThatCannotBeUsed(t *testing.T) {
	s := newStand(t, Options{})
	p := s.call("POST /v1/rules", "id: x\nxyz: ip\nlimit: 5/1m\n").wantProblem(t, fault.BadRules)
	if len(p.Problems) != 2 || p.Problems[1].Line != 2 || p.Problems[1].Column != 1 || p.Problems[1].Code != "E005" || p.Problems[1].Excerpt == "" || !strings.HasSuffix(p.Detail, "There is another error.") {
		t.Errorf("%+v", p)
	}
	s.call("PUT /v1/rules/x", "[]", "If-Match: *").wantProblem(t, fault.BadRules)
	s.call("PUT /v1/rules", "rules: [{id: a}]", "If-Match: *").wantProblem(t, fault.BadRules)
	s.call("PUT /v1/rules", "rules: [", "If-Match: *").wantProblem(t, fault.BadRules)
	// A rule that does what another does is found out when they are put together.
	s.call("POST /v1/rules", "{id: twin, match: {path: /safe}, key: global, limit: 10/1s, on_failure: closed}").wantProblem(t, fault.BadRules, "safe")
	for _, nothing := range []string{"", "\n", "# nothing\n", "{}"} {
		s.call("PUT /v1/rules", nothing, "If-Match: *").wantProblem(t, fault.BadBody, "rules: []")
	}
	s.call("PUT /v1/rules/login", "{id: logon, key: ip, limit: 1/1s}", "If-Match: *").wantProblem(t, fault.BadField, `"login"`, `"logon"`)
	s.call("PUT /v1/rules", strings.Repeat("#", rule.MaxDocument+1), "If-Match: *").wantProblem(t, fault.TooLarge, "4194304")
	s.call("POST /v1/rules?summary="+strings.Repeat("x", rule.MaxSummary+1), "{id: y, key: ip, limit: 1/1s}").wantProblem(t, fault.BadField, "1001 bytes")
	if current, err := s.rules.Current(t.Context()); err != nil || current.Number != 2 {
		t.Errorf("something was written: %+v, %v", current, err)
	}
}

func TestIfMatch(t *testing.T) {
	const body = "{id: login, match: {path: /login}, key: ip, limit: 9/1m}"
	rejecting := newStand(t, Options{})
	for _, c := range []struct {
		header string
		kind   *fault.Kind
	}{
		{"", fault.VersionRequired}, {`If-Match: ""`, fault.VersionConflict}, {`If-Match: "1"`, fault.VersionConflict}, {`If-Match: "3"`, fault.VersionConflict}, {`If-Match: "x"`, fault.VersionConflict},
		{`If-Match: 2`, fault.BadField}, {`If-Match: "2`, fault.BadField}, {`If-Match: "2"x`, fault.BadField}, {`If-Match: ,`, fault.VersionRequired},
		{`If-Match: ` + strings.Repeat(`"1",`, 101), fault.BadField},
		{`If-Match: "2"`, nil}, {`If-Match: W/"2"`, nil}, {`If-Match: "1" ,	"2"`, nil}, {`If-Match: *`, nil},
	} {
		for _, what := range []string{"PUT /v1/rules/login", "DELETE /v1/rules/login", "PUT /v1/rules", "POST /v1/rules/rollback"} {
			s := rejecting
			if c.kind == nil {
				s = newStand(t, Options{})
			}
			sent := map[string]string{"PUT /v1/rules": "rules: [" + body + "]", "POST /v1/rules/rollback": `{"version":1}`}[what]
			if sent == "" {
				sent = body
			}
			r := s.call(what, sent, c.header)
			if c.kind == nil {
				r.want(t, 200, nil)
				continue
			}
			p := r.wantProblem(t, c.kind, "If-Match")
			if c.kind == fault.VersionConflict && (p.Version != 2 || r.Header.Get("Etag") != `"2"`) {
				t.Errorf("%s, %s: %+v %v", what, c.header, p, r.Header)
			}
		}
	}
}

func TestPutAndDeleteRule(t *testing.T) {
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	var a WriteAnswer
	s.call("PUT /v1/rules/login", "{id: login, match: {method: POST, path: /api/login}, key: ip, algorithm: sliding_log, limit: 3/1m}", `If-Match: "2"`, as(adminToken)).want(t, 200, &a)
	if a.Version.Number != 3 || a.Version.Author != "alice" || !strings.Contains(a.Version.Summary, "login") || len(a.Warnings) == 0 || a.Warnings[0].Rule != "login" {
		t.Errorf("%+v", a)
	}
	// The same again changes nothing, and is no version.
	a = WriteAnswer{}
	s.call("PUT /v1/rules/login", "{id: login, match: {method: POST, path: /api/login}, key: ip, algorithm: sliding_log, limit: 3/1m}", `If-Match: *`, as(adminToken)).want(t, 200, &a)
	if a.Version.Number != 3 {
		t.Errorf("it is version %d", a.Version.Number)
	}
	r := s.call("PUT /v1/rules/fresh", "{id: fresh, match: {path: /fresh}, key: ip, limit: 3/1m}", `If-Match: "3"`, as(adminToken)).want(t, 201, nil)
	if r.Header.Get("Location") != "/v1/rules/fresh" {
		t.Errorf("%v", r.Header)
	}
	s.call("DELETE /v1/rules/fresh", "", `If-Match: "4"`, as(adminToken)).want(t, 200, &a)
	s.call("DELETE /v1/rules/fresh", "", `If-Match: "5"`, as(adminToken)).wantProblem(t, fault.NoRule)
	s.call("DELETE /v1/rules/fresh", "", `If-Match: "4"`, as(adminToken)).wantProblem(t, fault.VersionConflict)
}

func TestHistoryAndRollback(t *testing.T) {
	s := newStand(t, Options{})
	s.call("PUT /v1/rules?summary=all+gone", "rules: []\n", `If-Match: "2"`).want(t, 200, nil)
	var history HistoryAnswer
	s.call("GET /v1/rules/history", "").want(t, 200, &history)
	if len(history.Versions) != 3 || history.Versions[0].Number != 3 || history.Versions[0].Summary != "all gone" || history.Versions[0].Source != "" || history.Versions[1].Author != "test" {
		t.Errorf("%+v", history)
	}
	if time.Since(history.Versions[0].Time) > time.Hour {
		t.Errorf("it was written at %v", history.Versions[0].Time)
	}
	var two VersionAnswer
	s.call("GET /v1/rules/history/2", "").want(t, 200, &two)
	if two.Number != 2 || two.Source != testRules {
		t.Errorf("%+v", two)
	}
	for _, id := range []string{"0", "9", "x", "-1", "2.0", "99999999999999999999"} {
		s.call("GET /v1/rules/history/"+id, "").wantProblem(t, fault.NoVersion)
	}
	var a WriteAnswer
	s.call("POST /v1/rules/rollback", `{"version":2}`, `If-Match: "3"`).want(t, 200, &a)
	if a.Version.Number != 4 || a.Version.Summary != "rolled back to 2: exempt changed; block changed; added login, api, tenant, safe, queue" || !a.CommentsKept {
		t.Errorf("%+v", a)
	}
	if r := s.call("GET /v1/rules?format=yaml", ""); string(r.body) != testRules {
		t.Errorf("after the rollback: %s", r.body)
	}
	if _, version := s.engine.Rules(); version != 4 {
		t.Errorf("the engine has version %d", version)
	}
	s.call("POST /v1/rules/rollback", `{"version":9}`, `If-Match: *`).wantProblem(t, fault.NoVersion)
	s.call("POST /v1/rules/rollback", `{"version":0}`, `If-Match: *`).wantProblem(t, fault.BadField, "history")
	s.call("POST /v1/rules/rollback", `{"verson":1}`, `If-Match: *`).wantProblem(t, fault.BadField, "did you mean version?")
	s.call("POST /v1/rules/rollback", `{"version":1}`+strings.Repeat(" ", maxSmallBody), `If-Match: *`).wantProblem(t, fault.TooLarge)
}

// The history of one rule has the versions in which it came, changed and went.
func TestRuleHistory(t *testing.T) {
	s := newStand(t, Options{})
	numbers := func(query string) (all []int64) {
		t.Helper()
		var a HistoryAnswer
		s.call("GET /v1/rules/history"+query, "").want(t, 200, &a)
		if a.Incomplete {
			t.Error("so little is not compared")
		}
		for _, v := range a.Versions {
			all = append(all, v.Number)
		}
		return all
	}
	first := numbers("")[0]
	for _, call := range []struct{ what, body string }{
		{"PUT /v1/rules/fresh", "{id: fresh, key: ip, limit: 5/1m, match: {path: /fresh}}"},
		{"PUT /v1/rules/other", "{id: other, key: ip, limit: 5/1m, match: {path: /other}}"},
		{"PUT /v1/rules/fresh", "{id: fresh, key: ip, limit: 6/1m, match: {path: /fresh}}"},
		{"DELETE /v1/rules/other", ""},
		{"DELETE /v1/rules/fresh", ""},
	} {
		if r := s.call(call.what, call.body, anyVersion); r.StatusCode/100 != 2 {
			t.Fatalf("%s: %s", call.what, r.body)
		}
	}
	for query, want := range map[string][]int64{
		"?rule=fresh": {first + 5, first + 3, first + 1},
		"?rule=other": {first + 4, first + 2},
		"?rule=login": {first},
		"?rule=none":  nil,
	} {
		if got := numbers(query); !slices.Equal(got, want) {
			t.Errorf("%s is %v, want %v", query, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	s := newStand(t, Options{})
	for _, c := range []struct {
		what, body string
		valid      bool
		codes      string
	}{
		{"", testRules, true, ""},
		{"?as=document", "rules: [{id: login, match: {path: /login}, key: ip, limit: 5/1m}]", true, "W006"},
		{"", "rules: [{id: a, key: ip}]", false, "E007"},
		{"?as=rule", "{id: a, key: user, match: {path: /a}, limit: 5/1m}", true, ""},
		{"?as=rule", "{id: a}", false, "E007E007"},
		{"?as=rule", "{id: twin, match: {path: /safe}, key: global, limit: 10/1s, on_failure: closed}", false, "E025"},
	} {
		var a ValidateAnswer
		r := s.call("POST /v1/rules/validate"+c.what, c.body).want(t, 200, &a)
		var codes strings.Builder
		for _, p := range a.Problems {
			codes.WriteString(p.Code)
		}
		if a.Valid != c.valid || !strings.Contains(codes.String(), c.codes) || a.Problems == nil {
			t.Errorf("%s: %s, want %s", c.body, r.body, c.codes)
		}
	}
	s.call("POST /v1/rules/validate?as=poem", "").wantProblem(t, fault.BadField, "document or rule")
	s.call("POST /v1/rules/validate", strings.Repeat("#", rule.MaxDocument+1)).wantProblem(t, fault.TooLarge)
}

// Writers who name no version lose nothing, whichever instance they write to; of those
// who name one, one wins.
func TestConcurrentWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	instances := make([]*stand, 2)
	for i := range instances {
		repository, err := filerepo.Open(path, filerepo.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		instances[i] = newStand(t, Options{Service: manage.Service{Rules: repository}}).serve()
	}
	const writers, each = 4, 5
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				body := fmt.Sprintf("{id: r-%d-%d, match: {path: /%d/%d}, key: ip, limit: 5/1m}", w, i, w, i)
				if r := instances[w%2].call("POST /v1/rules", body); r.StatusCode != 201 {
					t.Errorf("%d %s", r.StatusCode, r.body)
				}
			}
		})
	}
	wg.Wait()
	var a RulesAnswer
	instances[0].call("GET /v1/rules", "").want(t, 200, &a)
	for w := range writers {
		for i := range each {
			if !strings.Contains(string(a.Rules), fmt.Sprintf(`"r-%d-%d"`, w, i)) {
				t.Errorf("r-%d-%d is lost", w, i)
			}
		}
	}
	tag := tagOf(versionText(a.Version))
	won := make(chan int, writers)
	for w := range writers {
		wg.Go(func() {
			body := fmt.Sprintf("{id: r-0-0, match: {path: /won}, key: ip, limit: %d/1h}", w+1)
			switch r := instances[w%2].call("PUT /v1/rules/r-0-0", body, "If-Match: "+tag); r.StatusCode {
			case 200:
				won <- w
			case 412:
			default:
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
		})
	}
	wg.Wait()
	if close(won); len(won) != 1 {
		t.Errorf("%d writers have won, want 1", len(won))
	}
}
