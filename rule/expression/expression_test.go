package expression_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/expression"
)

// values are headers and query parameters: "header:X-Plan" and "query:q".
type values map[string][]string

func (v values) Header(name string, from int) (string, int) {
	return rule.Listed(v["header:"+name], from)
}
func (v values) Cookie(string, int) (string, int) { return "", 0 }
func (v values) Query(name string, from int) (string, int) {
	return rule.Listed(v["query:"+name], from)
}

const body = `{"model": "large", "max_tokens": 100, "n": 2.0, "big": 1e3, "temperature": 0.5, "stream": true, "user": null,
	"messages": [{"role": "user", "content": "a\u0062\"c"}, {"role": "system", "content": ""}], "max_tokens": 200, "": 1}`

func request() *rule.Request {
	return &rule.Request{
		Method: "post", Host: "API.example.com:443", Path: "/v1//chat/", User: "alice", Tier: "pro", Size: 4096,
		IP: netip.MustParseAddr("::ffff:192.0.2.7"), Attributes: map[string]string{"action": "chat"},
		Values: values{"header:X-Plan": {"free"}, "header:X-Twice": {"a", "b"}, "header:Authorization": {"Bearer x"}, "query:q": {"1"}},
		JSON:   func() ([]byte, error) { return []byte(body), nil },
	}
}

var response = rule.Response{
	Status: 200, Bytes: 2048, Duration: 1500 * time.Millisecond, JSON: []byte(` {"usage": {"total_tokens": 42}} `),
	Header: http.Header{"X-Tokens": {"17"}},
}

func entry(t testing.TB, fields string) *rule.Entry {
	t.Helper()
	set, problems := rule.Parse("", []byte("rules:\n  - id: a\n    key: global\n    limit: 1000000/1m\n"+fields))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table.Rules()[0]
}

// applies is whether a rule with the condition matches the request.
func applies(t testing.TB, when string, req *rule.Request) (matches bool, failures int64) {
	t.Helper()
	set := &rule.Set{Rules: []rule.Rule{{ID: "a", Key: []rule.Source{{Kind: rule.Global}}, Quota: rule.Quota{Rates: []rule.Rate{{N: 1, Period: time.Second}}}, Match: rule.Match{When: when}}}}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	return len(table.Match(nil, req)) == 1, table.Rules()[0].Failures()
}

func TestConditions(t *testing.T) {
	for when, want := range map[string]bool{
		`request.method == "POST"`:                                                       true,
		`request.host == "api.example.com"`:                                              true,
		`request.path == "/v1/chat"`:                                                     true,
		`request.path.startsWith("/v1/") && !request.path.endsWith("/x")`:                true,
		`request.headers["x-plan"] == "free"`:                                            true,
		`request.headers.host == request.host`:                                           true,
		`request.path.matches("^/v[0-9]{1,3}/c{1}") && !matches(request.path, "x{2,9}")`: true,
		`request.headers["X-PLAN"].matches("^fr.e$")`:                                    true,
		`request.headers["x-twice"] == "a, b"`:                                           true,
		`request.headers["x-none"] == ""`:                                                true,
		`"x-plan" in request.headers && !("x-none" in request.headers)`:                  true,
		`"authori" + "zation" in request.headers`:                                        false,
		`request.headers["authori" + "zation"] == ""`:                                    true,
		`request.query["q"] == "1" && request.query.none == ""`:                          true,
		`request.attributes.action == "chat" && request.attributes.no == ""`:             true,
		`request.user == "alice" && request.tier == "pro"`:                               true,
		`request.ip == "192.0.2.7"`:                                                      true,
		`request.size > 4095`:                                                            true,
		`request.json.model == "large"`:                                                  true,
		`request.json.max_tokens == 200`:                                                 true,
		`request.json.n + 1 == 3 && request.json.big == 1000`:                            true,
		`request.json.temperature < 1`:                                                   true,
		`request.json.stream && request.json.user == null`:                               true,
		`request.json[""] == 1`:                                                          true,
		`request.json.messages.exists(m, m.role == "system")`:                            true,
		`request.json.messages[0].content == "ab\"c"`:                                    true,
		`size(request.json.messages) == 2`:                                               true,
		`has(request.json.none) || has(request.json.model.none)`:                         false,
		`request.json.?none.orValue(7) == 7`:                                             true,
		`request.json.?model.orValue("") == "large"`:                                     true,
		`math.greatest(request.size, 5000) == 5000`:                                      true,
	} {
		if got, failures := applies(t, when, request()); got != want || failures != 0 {
			t.Errorf("%s is %v with %d failures, want %v", when, got, failures, want)
		}
	}
}

// A request for which the condition cannot be evaluated is limited.
func TestConditionsThatFail(t *testing.T) {
	for _, when := range []string{
		`request.json.none == 1`, `request.json.model + 1 == 2`, `request.json.model`, `1 / (request.size - 4096) == 1`,
		`request.json.messages[5].role == ""`, `int(request.json.model) == 1`, `request.size * 9223372036854775807 == 1`,
		`request.json.temperature + 1 == 1`,
	} {
		if got, failures := applies(t, when, request()); !got || failures != 1 {
			t.Errorf("%s is %v with %d failures", when, got, failures)
		}
	}
	req := request()
	req.JSON = func() ([]byte, error) { return nil, errors.New("cut off") }
	if got, failures := applies(t, "has(request.json.none)", req); !got || failures != 1 {
		t.Errorf("a body that cannot be read: %v with %d failures", got, failures)
	}
}

// A body that is no JSON has no fields.
func TestNoJSON(t *testing.T) {
	for _, text := range []string{"", "x=1", "{", "[1] 2", "\xff"} {
		req := request()
		req.JSON = func() ([]byte, error) { return []byte(text), nil }
		if got, failures := applies(t, "has(request.json.model)", req); got || failures != 0 {
			t.Errorf("%q: %v with %d failures", text, got, failures)
		}
	}
	if got, failures := applies(t, "has(request.json.model)", &rule.Request{}); got || failures != 0 {
		t.Errorf("no body: %v with %d failures", got, failures)
	}
}

func TestCosts(t *testing.T) {
	for fields, want := range map[string][2]int64{
		`cost: {estimate: request.size / 1024}`:                                                                {4, 4},
		`cost: {estimate: double(request.size) / 1000.0}`:                                                      {5, 5},
		`cost: {estimate: request.json.max_tokens * request.json.n, actual: response.json.usage.total_tokens}`: {400, 42},
		`cost: {estimate: 0, actual: response.size / 1024}`:                                                    {},
		`cost: {estimate: "0", actual: response.size / 1024}`:                                                  {1, 2},
		`cost: {estimate: 50, actual: 'int(response.headers["x-tokens"])'}`:                                    {50, 17},
		`cost: {actual: response.duration.getMilliseconds()}`:                                                  {1, 1500},
		`cost: {actual: "response.status == 200 ? 0u : 3u"}`:                                                   {1, 0},
		`cost: {estimate: 7, actual: response.size}` + "\n    count: {status: 5xx}":                            {7, 0},
		`cost: {estimate: 7, actual: response.size}` + "\n    count: {status: 2xx}":                            {7, 2048},
	} {
		if want == ([2]int64{}) { // an estimate that is a number is a cost
			if _, problems := rule.Parse("", []byte("rules: [{id: a, key: ip, limit: 5/1m, "+fields+"}]")); problems.Err() == nil {
				t.Errorf("%s is accepted", fields)
			}
			continue
		}
		e := entry(t, "    "+fields)
		estimate := e.Estimate(request())
		actual, err := e.Actual(request(), &response, estimate)
		if estimate != want[0] || actual != want[1] || err != nil || e.Failures() != 0 {
			t.Errorf("%s is %d, then %d, %v, %d failures; want %d", fields, estimate, actual, err, e.Failures(), want)
		}
	}
}

// A cost that cannot be computed is the default, and then what was reserved.
func TestCostsThatFail(t *testing.T) {
	for _, expression := range []string{
		"request.json.none", "request.json.model", "-1", "request.size - 5000", "0.0 / 0.0", "1.0 / 0.0", "1e300", "9223372036854775807",
		"request.size / 0", "int(request.json.model)", "18446744073709551615u", "-0.5 - 0.6",
	} {
		e := entry(t, fmt.Sprintf("    cost: {estimate: %q, default: 30, actual: %q}", expression, expression))
		if got := e.Estimate(request()); got != 30 {
			t.Errorf("the estimate %s is %d", expression, got)
		}
		if got, err := e.Actual(request(), &response, 44); got != 44 || err == nil {
			t.Errorf("the actual cost %s is %d, %v", expression, got, err)
		} else if strings.Contains(err.Error(), "large") && !strings.Contains(err.Error(), "too large") {
			t.Errorf("the error of %s has a value of the request: %v", expression, err)
		}
		if e.Failures() != 2 {
			t.Errorf("%s: %d failures", expression, e.Failures())
		}
	}
	e := entry(t, "    cost: {estimate: request.json.none}")
	if got := e.Estimate(&rule.Request{Cost: 9}); got != 9 || e.Failures() != 0 {
		t.Errorf("a request with its own cost costs %d, %d failures", got, e.Failures())
	}
}

// The first failure of a rule is reported.
func TestFailed(t *testing.T) {
	set, problems := rule.Parse("", []byte("rules: [{id: a, key: ip, limit: 5/1m, cost: {estimate: request.json.none}}]"))
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	var reports []string
	table, err := rule.Compile(set, rule.Options{Failed: func(e *rule.Entry, err error) { reports = append(reports, e.ID+": "+err.Error()) }})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		table.Rules()[0].Estimate(&rule.Request{})
	}
	if want := "a: cost: estimate: a field or an index that it reads does not exist"; len(reports) != 1 || reports[0] != want {
		t.Errorf("reported %q", reports)
	}
}
