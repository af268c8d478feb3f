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
	_ "github.com/weirhq/weir/rule/rulefile" // reads YAML
)

// values are headers and query parameters: "header:X-Plan" and "query:q".
type values map[string][]string

func (v values) Header(name string, from int) (string, int) {
	return rule.NextValue(v["header:"+name], from)
}
func (v values) Cookie(string, int) (string, int) { return "", 0 }
func (v values) Query(name string, from int) (string, int) {
	return rule.NextValue(v["query:"+name], from)
}

const body = `{"model": "large", "max_tokens": 200, "n": 2.0, "big": 1e3, "temperature": 0.5, "stream": true, "user": null,
	"messages": [{"role": "user", "content": "a\u0062\"c"}, {"role": "system", "content": ""}], "": 1}`

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
	hits := matching(t, when, req)
	if len(hits) == 0 {
		return false, 0
	}
	return true, hits[0].Failures()
}

func matching(t testing.TB, when string, req *rule.Request) []rule.Hit {
	t.Helper()
	return tableOf(t, when).Match(nil, req)
}

func tableOf(t testing.TB, when string) *rule.Table {
	t.Helper()
	set := &rule.Set{Rules: []rule.Rule{{ID: "a", Key: []rule.Source{{Kind: rule.Global}}, Quota: rule.Quota{Rates: []rule.Rate{{N: 1, Period: time.Second}}}, Match: rule.Match{When: when}}}}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	return table
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
}

// A request whose body cannot be read is denied, whatever else the condition says.
func TestUnreadable(t *testing.T) {
	busy := &rule.RequestError{Status: 503, Reason: "busy"}
	for _, c := range []struct {
		body string
		err  error
		want int
	}{
		{"", errors.New("cut off"), 400}, {"", busy, 503}, {"x=1", nil, 400}, {"{", nil, 400}, {"[1] 2", nil, 400}, {"\xff", nil, 400}, {"\ufeff{}", nil, 400},
		{"{\"plan\":\"\xff\"}", nil, 400}, {`{"plan":"a","plan":"b"}`, nil, 400}, {`{"plan":"a","Plan":"b"}`, nil, 400}, {`{"\u017f":1,"PLAN":"a"}`, nil, 400},
		{`{"x":{"\u212A":1}}`, nil, 400}, {"[" + strings.Repeat("1,", 20_000) + "1]", nil, 413},
	} {
		for _, when := range []string{`has(request.json.plan)`, `request.json.?plan.orValue("") == "a"`, `request.json["plan"] == "a" || request.json.x["k"] == 1 || true`, `"plan" in request.json`} {
			if strings.Contains(c.body, "212A") && !strings.Contains(when, "request.json.x") {
				continue
			}
			req := request()
			req.JSON = func() ([]byte, error) { return []byte(c.body), c.err }
			hits := matching(t, when, req)
			if len(hits) != 1 || hits[0].Failures() != 1 {
				t.Errorf("%.50s %s: %d hits", c.body, when, len(hits))
				continue
			}
			_, _, err := hits[0].Identities(nil, nil, req)
			if denied, ok := errors.AsType[*rule.RequestError](err); !ok || denied.Status != c.want {
				t.Errorf("%.50s %s: %v", c.body, when, err)
			}
			if why := tableOf(t, when).Explain(req)[0].Why; len(why) != 1 || why[0] != "the expression of when cannot read the request" {
				t.Errorf("%.50s %s: %q", c.body, when, why)
			}
		}
	}
}

// A request without a body has no fields.
func TestNoJSON(t *testing.T) {
	req := request()
	req.JSON = func() ([]byte, error) { return nil, nil }
	for _, req := range []*rule.Request{req, {}} {
		if got, failures := applies(t, "has(request.json.model)", req); got || failures != 0 {
			t.Errorf("%v with %d failures", got, failures)
		}
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
		estimate, wrong := e.Estimate(request())
		actual, err := e.Actual(request(), &response, estimate)
		if wrong != nil || estimate != want[0] || actual != want[1] || err != nil || e.Failures() != 0 {
			t.Errorf("%s is %d, then %d, %v, %d failures; want %d", fields, estimate, actual, err, e.Failures(), want)
		}
	}
}

// An estimate is the default only if the request lacks something, and an actual cost that cannot be computed
// is what was reserved.
func TestCostsThatFail(t *testing.T) {
	for expression, denied := range map[string]bool{
		"request.json.none": false, "request.json.user": false, "request.json.messages[5].n": false, `int(request.headers["x-none"])`: false,
		"request.json.messages.map(m, m.none)[0]": false, "request.json.messages.map(m, 1)[7]": false,
		"request.json.model": true, "-1": true, "request.size - 5000": true, "0.0 / 0.0": true, "1.0 / 0.0": true, "1e300": true, "9223372036854775807": true,
		"request.size / 0": true, "int(request.json.model)": true, "18446744073709551615u": true, "-0.5 - 0.6": true, "-0.5": true, `int(request.headers["x-plan"])`: true,
		`request.headers["x-none"] == "pro" ? 1 : int(request.headers["x-plan"])`: true, `request.headers["x-none"] == "" ? int(request.json.model) : 1`: true,
		`request.headers["x-plan"] == "" ? 1 : int(request.headers["x-none"])`: false, `int(request.path.matches("x") ? "1" : "")`: false,
		"request.json.user * 2": true, "request.json.stream": true, "1125899906842624.5": true,
	} {
		e := entry(t, fmt.Sprintf("    cost: {estimate: %q, default: 30, actual: %q}", expression, expression))
		got, err := e.Estimate(request())
		if wrong, is := errors.AsType[*rule.RequestError](err); is != denied || is && wrong.Status != 400 || !is && got != 30 {
			t.Errorf("the estimate %s is %d, %v", expression, got, err)
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
	if got, err := e.Estimate(&rule.Request{Cost: 9}); got != 9 || err != nil || e.Failures() != 0 {
		t.Errorf("a request with its own cost costs %d, %v, %d failures", got, err, e.Failures())
	}
}

// What an actual cost needs of the request is known before, and what it needs of the response is not guessed.
func TestActualOfUnreadable(t *testing.T) {
	e := entry(t, `    cost: {estimate: 50, actual: 'response.json.?used.orValue(0) + request.json.?n.orValue(1)'}`)
	for body, denied := range map[string]bool{`{"n":3}`: false, `{}`: false, ``: false, `{"n":3,"n":4}`: true, `{`: true} {
		req := &rule.Request{JSON: func() ([]byte, error) { return []byte(body), nil }}
		got, err := e.Estimate(req)
		if (err != nil) != denied || !denied && got != 50 {
			t.Errorf("%s: %d, %v", body, got, err)
		}
	}
	for answer, want := range map[string]int64{`{"used":7}`: 8, `{}`: 1, ``: 44, `{`: 44, `{"used":1,"used":7}`: 44} {
		if got, err := e.Actual(&rule.Request{}, &rule.Response{Status: 200, JSON: []byte(answer)}, 44); got != want || (err != nil) != (want == 44) {
			t.Errorf("%q: %d, %v", answer, got, err)
		}
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
		_, _ = table.Rules()[0].Estimate(&rule.Request{})
	}
	if want := "a: cost: estimate: a field or an index that it reads does not exist"; len(reports) != 1 || reports[0] != want {
		t.Errorf("reported %q", reports)
	}
}
