package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/rule"
	"go.yaml.in/yaml/v4"
)

// description is openapi.yaml, read as a program would.
type description struct {
	root map[string]any
	seen map[string]bool // "GET /v1/rules 200"
}

func readDescription(t *testing.T) *description {
	t.Helper()
	var tree any
	if err := yaml.Unmarshal(openAPI, &tree); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	root, err := readJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return &description{root: root.(map[string]any), seen: map[string]bool{}}
}

// at follows a path of names, and references on the way.
func (d *description) at(names ...string) (node any) {
	node = d.root
	for _, name := range names {
		m, ok := node.(map[string]any)
		if !ok || m[name] == nil {
			return nil
		}
		node = m[name]
		if m, ok := node.(map[string]any); ok {
			if ref, ok := m["$ref"].(string); ok {
				node = d.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			}
		}
	}
	return node
}

// operations are all of them, as routes are written.
func (d *description) operations() []string {
	var all []string
	paths := d.at("paths")
	for path, item := range paths.(map[string]any) {
		for method := range item.(map[string]any) {
			if method != "parameters" {
				all = append(all, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(all)
	return all
}

// hold holds an answer against the description.
func (d *description) hold(t *testing.T, operation string, r *reply) {
	t.Helper()
	method, path, _ := strings.Cut(operation, " ")
	status := fmt.Sprint(r.StatusCode)
	where := []string{"paths", path, strings.ToLower(method), "responses"}
	if answer := d.at(append(where, status)...); answer == nil {
		status = "default"
	}
	where = append(where, status)
	answer := d.at(where...)
	if answer == nil {
		t.Errorf("%s answers %d, of which the description says nothing: %s", operation, r.StatusCode, r.body)
		return
	}
	d.seen[operation+" "+status] = true
	for name := range r.Header {
		if known := d.at(append(where, "headers")...); !everywhere[name] && !hasHeader(known, name) {
			t.Errorf("%s %s has the header %s, of which the description says nothing", operation, status, name)
		}
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	schema := d.at(append(where, "content", kind, "schema")...)
	switch {
	case schema == nil && kind == "" && len(r.body) == 0:
		return
	case schema == nil:
		t.Errorf("%s answers %s as %q, of which the description says nothing", operation, status, kind)
		return
	}
	var value any = string(r.body)
	if strings.HasSuffix(kind, "json") && kind != typeLines[0] {
		var err error
		if value, err = readJSON(r.body); err != nil {
			t.Errorf("%s: %v in %s", operation, err, r.body)
			return
		}
	}
	if err := (&schemaCheck{d.at}).check(schema, value); err != nil {
		t.Errorf("%s answers %s: %v", operation, r.body, err)
	}
}

// everywhere are headers that any answer may have.
var everywhere = map[string]bool{
	"Content-Type": true, "Cache-Control": true, "X-Request-Id": true, "X-Content-Type-Options": true, "Vary": true,
}

func hasHeader(known any, name string) bool {
	m, _ := known.(map[string]any)
	for k := range maps.Keys(m) {
		if http.CanonicalHeaderKey(k) == name {
			return true
		}
	}
	return false
}

func TestDescriptionHasEveryRoute(t *testing.T) {
	d := readDescription(t)
	var ours []string
	for _, r := range routes() {
		methods := []string{r.method}
		if r.method == "" {
			methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
		}
		for _, m := range methods {
			ours = append(ours, m+" "+r.path)
		}
	}
	slices.Sort(ours)
	if theirs := d.operations(); !slices.Equal(ours, theirs) {
		t.Errorf("the routes are\n%s\nand the description has\n%s", strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
	}
	types := d.at("components", "schemas", "Problem", "properties", "type", "enum")
	var names []any
	for _, k := range slices.DeleteFunc(slices.Clone(fault.Kinds()), func(k *fault.Kind) bool { return k.Status == 0 }) {
		names = append(names, problemPrefix+k.Name)
	}
	if !slices.Equal(names, types.([]any)) {
		t.Errorf("the problems are %v, the description has %v", names, types)
	}
	described := d.at("components", "schemas", "Problem", "properties", "code", "enum")
	if codes := codesInSource(t); !slices.Equal(codes, described.([]any)) {
		t.Errorf("the codes are %v, the description has %v", codes, described)
	}
	s := newStand(t, Options{})
	if r := s.call("GET /v1/openapi.yaml", "").want(t, 200, nil); !bytes.Equal(r.body, openAPI) {
		t.Error("what is served is not the description")
	}
}

// codesInSource are the codes of problems, in order.
func codesInSource(t *testing.T) (codes []any) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := filepath.Glob("../../fault/*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range slices.Concat(files, shared) {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:\.Coded\(|having\(func.*?, )"([a-z-]+)"`).FindAllSubmatch(source, -1) {
			seen[string(m[1])] = true
		}
	}
	for _, code := range slices.Sorted(maps.Keys(seen)) {
		codes = append(codes, code)
	}
	return codes
}

// Every answer that the description names is given, and is as it says.
func TestAnswersAreAsDescribed(t *testing.T) {
	d := readDescription(t)
	denying := newStand(t, Options{Authz: httplimit.Options{TrustedProxies: proxies}})
	for _, c := range answersTried {
		s := denying
		if c.status < 300 || c.special() {
			s = c.stand(t, denying.rules)
		}
		if c.reserved != nil {
			hold := s.reservation(t)
			c.reserved(s, hold)
			c.body = strings.ReplaceAll(c.body, "HOLD", hold)
		}
		r := s.call(c.what, c.body, c.headers...)
		if r.StatusCode != c.status {
			t.Errorf("%s %v: the status is %d, want %d: %s", c.what, c.headers, r.StatusCode, c.status, r.body)
		}
		method, target, _ := strings.Cut(c.what, " ")
		path, _, _ := strings.Cut(target, "?")
		found, _, _ := s.findRoute(method, path)
		d.hold(t, method+" "+found.path, r)
	}
	for _, operation := range d.operations() {
		method, path, _ := strings.Cut(operation, " ")
		if path == "/v1/authz" && method != "GET" {
			continue // they are one
		}
		answers := d.at("paths", path, strings.ToLower(method), "responses")
		for status := range answers.(map[string]any) {
			if !d.seen[operation+" "+status] {
				t.Errorf("%s has never answered %s; add such a call", operation, status)
			}
		}
	}
}

// tried is a call that gives one of the answers in the description.
type tried struct {
	what, body string
	status     int
	headers    []string
	tokens     bool // there are some
	tired      bool // the same was called just before
	gone       bool // the rules cannot be read, nor the store asked
	late       bool // there is no time left
	options    Options
	with       func(*testing.T, *Options) // adds what has to be opened
	rules      string                     // instead of those of the other tests

	// reserved is done to a stand after a reservation, whose hold stands for HOLD in the body.
	reserved func(*stand, string)
}

// special is whether a call needs a stand of its own to be denied.
func (c *tried) special() bool {
	o := c.options
	return c.reserved != nil || c.with != nil || c.tokens || c.tired || c.gone || c.late || c.rules != "" || o.Clients != nil || o.Apply != nil || o.Ready != nil || o.Metrics != nil || o.Limits.Calls.N > 0
}

// readOnly is rules that cannot be written.
func readOnly(_ *testing.T, o *Options) {
	o.Rules.(*gone).write = &repo.ReadOnlyError{Why: "rules.yaml is a link", Err: errors.New("an internal path")}
}

// writesRules is whether a call may change the document.
func writesRules(what string) bool {
	return isListCall(what) || strings.Contains(what, "/v1/rules") && !strings.HasPrefix(what, "GET ")
}

func isListCall(what string) bool {
	return strings.Contains(what, "/v1/block") || strings.Contains(what, "/v1/exempt")
}

// stand is one that answers as it should.
func (c *tried) stand(t *testing.T, unchanged repo.Repository) *stand {
	t.Helper()
	g := &gone{Repository: unchanged}
	if c.rules != "" || writesRules(c.what) {
		g.Repository = openRules(t, cmp.Or(c.rules, testRules)) // which takes a while, to be safe on the disk
	}
	o := c.options
	o.Rules, o.Authz.TrustedProxies = g, proxies
	if c.tokens {
		o.Tokens = tokens(t)
		guard, err := manage.NewGuard(manage.GuardOptions{})
		if err != nil {
			t.Fatal(err)
		}
		o.Checks = manage.NewChecks(o.Tokens, guard, slog.New(slog.DiscardHandler))
	}
	if c.with != nil {
		c.with(t, &o)
	}
	s := newStand(t, o)
	if c.tired {
		s.call(c.what, c.body, c.headers...)
	}
	if c.gone {
		g.err = errors.New("the rules are gone")
		s.store.lost.Store(true)
	}
	if c.late {
		s.deadline = time.Unix(1, 0)
	}
	return s
}

const (
	anyVersion = "If-Match: *"
	small      = "{id: small, match: {path: /small}, key: ip, limit: 5/1m}"
)

var answersTried = func() []tried {
	all := slices.Concat(holdsTried(), []tried{
		{what: "POST /v1/check", body: ordinary, status: 200},
		{what: "POST /v1/check", body: `{"user":"alice","path":"/api/x","ip":"203.0.113.66"}`, status: 200},
		{what: "POST /v1/check", body: `{"path":"/api/login","method":"POST","ip":"192.0.2.1","cost":3}`, status: 200},
		{what: "POST /v1/check", body: `{"path":"/queue"}`, status: 200, tired: true},
		{what: "POST /v1/check", body: `{"path":"/safe"}`, status: 200, gone: true},
		{what: "POST /v1/check", body: `{"usr":1}`, status: 400},
		{what: "POST /v1/check", body: strings.Repeat(" ", MaxCheckBody+1), status: 413},
		{what: "POST /v1/check", body: `{"user":"alice"}`, status: 422, rules: manyRules()},
		{what: "POST /v1/check", body: `{"path":"/safe"}`, status: 503, gone: true, late: true},
		{what: "POST /v1/check", body: "{}", status: 403, headers: []string{"Host: evil.example.com"}},

		{what: "GET /v1/authz", status: 200, headers: []string{"X-Original-URI: /queue"}},
		{what: "GET /v1/authz?deny_status=1", status: 400},
		{what: "GET /v1/authz", status: 403, headers: []string{proxy, "X-Forwarded-For: 203.0.113.66"}},
		{what: "GET /v1/authz", status: 403, headers: []string{"X-Original-URI: /a", "X-Forwarded-Uri: /b"}},
		{what: "GET /v1/authz", status: 503, headers: []string{"X-Original-URI: /safe"}, gone: true},

		{what: "GET /v1/rules?format=yaml", status: 200},
		{what: "GET /v1/rules", status: 304, headers: []string{`If-None-Match: "2"`}},
		{what: "GET /v1/rules?x=1", status: 400},
		{what: "POST /v1/rules", body: small, status: 201},
		{what: "POST /v1/rules", body: "{id: x, kye: ip}", status: 400},
		{what: "POST /v1/rules", body: "{id: login, key: ip, limit: 1/1s}", status: 409},
		{what: "POST /v1/rules", body: small, status: 412, headers: []string{`If-Match: "1"`}},
		{what: "POST /v1/rules", body: strings.Repeat("#", rule.MaxDocument+1), status: 413},
		{what: "PUT /v1/rules", body: "rules: [{id: login, key: ip, limit: 5/1m}]", status: 200, headers: []string{`If-Match: "2"`}},
		{what: "PUT /v1/rules", body: "rules: [{}]", status: 400, headers: []string{anyVersion}},
		{what: "PUT /v1/rules", body: "rules: []", status: 412, headers: []string{`If-Match: "1"`}},
		{what: "PUT /v1/rules", body: strings.Repeat("#", rule.MaxDocument+1), status: 413},
		{what: "PUT /v1/rules", body: "rules: []", status: 428},

		{what: "GET /v1/rules/api", status: 200},
		{what: "GET /v1/rules/api?format=yaml", status: 200},
		{what: "GET /v1/rules/api", status: 304, headers: []string{`If-None-Match: *`}},
		{what: "GET /v1/rules/api?format=x", status: 400},
		{what: "GET /v1/rules/none", status: 404},
		{what: "PUT /v1/rules/small", body: small, status: 201, headers: []string{anyVersion}},
		{what: "PUT /v1/rules/login", body: small, status: 400, headers: []string{anyVersion}},
		{what: "PUT /v1/rules/small", body: small, status: 412, headers: []string{`If-Match: "1"`}},
		{what: "PUT /v1/rules/small", body: strings.Repeat("#", rule.MaxDocument+1), status: 413},
		{what: "PUT /v1/rules/small", body: small, status: 428},
		{what: "DELETE /v1/rules/login?summary=" + strings.Repeat("x", 1001), status: 400, headers: []string{anyVersion}},
		{what: "DELETE /v1/rules/none", status: 404, headers: []string{anyVersion}},
		{what: "DELETE /v1/rules/login", status: 412, headers: []string{`If-Match: "1"`}},
		{what: "DELETE /v1/rules/login", status: 428},

		{what: "GET /v1/rules/history?x=1", status: 400},
		{what: "GET /v1/rules/history/9", status: 404},
		{what: "POST /v1/rules/rollback", body: "{}", status: 400, headers: []string{anyVersion}},
		{what: "POST /v1/rules/rollback", body: `{"version":9}`, status: 404, headers: []string{anyVersion}},
		{what: "POST /v1/rules/rollback", body: `{"version":1}`, status: 412, headers: []string{`If-Match: "1"`}},
		{what: "POST /v1/rules/rollback", body: strings.Repeat(" ", maxSmallBody+1), status: 413},
		{what: "POST /v1/rules/rollback", body: `{"version":1}`, status: 428},
		{what: "POST /v1/rules/validate?as=rule", body: "{id: x}", status: 200},
		{what: "POST /v1/rules/validate?as=x", status: 400},
		{what: "POST /v1/rules/validate", body: strings.Repeat("#", rule.MaxDocument+1), status: 413},
		{what: "POST /v1/rules/validate?as=rule", body: small, status: 503, gone: true},
		{what: "POST /v1/rules/format", body: `{"source":"a: b: c"}`, status: 200},
		{what: "POST /v1/rules/format", body: `{"source":"id: a # x","rule":{"id":"b"}}`, status: 200},
		{what: "POST /v1/rules/format", body: `{"rule":[]}`, status: 400},
		{what: "POST /v1/rules/format", body: strings.Repeat(" ", MaxDraftBody+1), status: 413},
		{what: "POST /v1/rules/try", body: `{"source":"{id: x}"}`, status: 400},
		{what: "POST /v1/rules/try", body: strings.Repeat(" ", MaxDraftBody+1), status: 413},
		{what: "POST /v1/rules/try", body: `{"source":"{id: new, key: ip, limit: 5/1m}","request":{"user":"alice"}}`, status: 422, rules: manyRules()},
		{what: "POST /v1/rules/replay", body: `{"log":"` + strings.Repeat(logLine+`\n`, 5) + `x"}`, status: 200},
		{what: "POST /v1/rules/replay", body: `{"log":""}`, status: 400},
		{what: "POST /v1/rules/replay", body: strings.Repeat(" ", MaxReplayBody+1), status: 413},
		{what: "POST /v1/rules/replay", body: `{"log":"` + strings.Replace(logLine, " - - ", " - alice ", 1) + `"}`, status: 422, rules: manyRules()},

		{what: "GET /v1/keys", status: 400},
		{what: "GET /v1/keys?key=user:alice&rule=none", status: 404},
		{what: "DELETE /v1/keys", status: 400},
		{what: "DELETE /v1/keys?key=user:alice&rule=none", status: 404},

		{what: "PUT /v1/exempt?ip=192.0.2.1", status: 200},
		{what: "PUT /v1/exempt", status: 400},
		{what: "PUT /v1/exempt?user=bob", status: 412, headers: []string{`If-Match: "1"`}},
		{what: "DELETE /v1/exempt?ip=192.0.2.1", status: 200},
		{what: "DELETE /v1/exempt", status: 400},
		{what: "DELETE /v1/exempt?user=bob", status: 412, headers: []string{`If-Match: "1"`}},
		{what: "PUT /v1/block?ip=192.0.2.1", status: 200},
		{what: "PUT /v1/block", status: 400},
		{what: "PUT /v1/block?user=bob", status: 412, headers: []string{`If-Match: "1"`}},
		{what: "DELETE /v1/block?ip=192.0.2.1", status: 200},
		{what: "DELETE /v1/block", status: 400},
		{what: "DELETE /v1/block?user=bob", status: 412, headers: []string{`If-Match: "1"`}},

		{what: "POST /v1/simulate", body: `{"limits":["2000000/1h"],"traffic":"1@0s,3@1h","seed":7,"columns":10}`, status: 200},
		{what: "POST /v1/simulate", body: `{"limits":["10/1s"]}`, status: 400},
		{what: "POST /v1/simulate", body: strings.Repeat(" ", MaxSimulateBody+1), status: 413},
		{what: "POST /v1/simulate", body: `{"limits":["10/1s"],"traffic":"burst"}`, status: 503, late: true},

		{what: "GET /v1/openapi.yaml", status: 200},
		{what: "GET /healthz", status: 200},
		{what: "GET /readyz", status: 200},
		{what: "GET /readyz", status: 503, options: Options{Service: manage.Service{Ready: func(context.Context) error { return errors.New("not yet") }}}},
		{what: "GET /healthcheck", status: 200},
		{what: "GET /healthcheck", status: 500, options: Options{Service: manage.Service{Ready: func(context.Context) error { return errors.New("not yet") }}}},
		{what: "GET /rlconfig", status: 404},
		{what: "GET /rlconfig", status: 503, with: func(_ *testing.T, o *Options) { o.Envoy = func() *envoyconfig.Config { return nil } }},
		{what: "GET /metrics", status: 404},
		{what: "GET /metrics", status: 403, headers: []string{"Host: evil.example.com"}},
		{what: "GET /metrics", status: 200, options: Options{Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		})}},
	})
	// What every route of the management can answer.
	tired := Options{Service: manage.Service{Limits: manage.GuardOptions{Calls: weir.Limit{N: 1, Period: time.Hour}}}}
	failing := Options{Service: manage.Service{Apply: func(repo.Version) error { return errors.New("no room") }}}
	for _, what := range []string{"check", "reserve", "settle", "cancel", "extend"} {
		all = append(all, tried{what: "POST /v1/" + what, body: "{}", status: 401, tokens: true})
	}
	for _, m := range managed {
		if strings.HasPrefix(m.what, "HEAD") {
			continue
		}
		version := []string{anyVersion}
		created := 200
		if m.what == "POST /v1/rules" || m.what == "POST /v1/alerts/silences" || m.what == "POST /v1/overrides" {
			created = 201
		}
		if m.what == "DELETE /v1/clients/user:bob" {
			created = 204
		}
		with := func(*testing.T, *Options) {}
		if strings.Contains(m.what, "/stats/") || strings.Contains(m.what, "/spend") || strings.Contains(m.what, "/alerts") {
			with = remembering
		}
		if strings.Contains(m.what, "/queues/") || strings.Contains(m.what, "/counters/") {
			with = withKept
		}
		if m.what == "GET /rlconfig" {
			with = withEnvoy
		}
		if m.what == "GET /v1/leases" {
			with = leased
		}
		all = append(all,
			tried{what: m.what, body: m.body, status: created, headers: version, with: with},
			tried{what: m.what, body: m.body, status: 401, headers: version, tokens: true},
			tried{what: m.what, body: m.body, status: 403, headers: []string{anyVersion, "Host: evil.example.com"}},
			tried{what: m.what, body: m.body, status: 429, headers: version, tired: true, options: tired, with: with})
		if strings.Contains(m.what, "/v1/rules") && !strings.Contains(m.what, "validate") || strings.Contains(m.what, "/keys") || isListCall(m.what) {
			all = append(all, tried{what: m.what, body: m.body, status: 503, headers: version, gone: true})
		}
		if writesRules(m.what) && m.changes {
			all = append(all,
				tried{what: m.what, body: m.body, status: 500, headers: version, options: failing},
				tried{what: m.what, body: m.body, status: 409, headers: version, with: readOnly})
		}
	}
	return slices.Concat(all, overridesTried, sessionTried, statsTried, alertsTried, countersTried, queuesTried, clientsTried)
}()
