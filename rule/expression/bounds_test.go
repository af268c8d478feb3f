package expression_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

// An evaluation ends after a bounded number of steps, whatever the client sends.
func TestEvaluationIsBounded(t *testing.T) {
	req := request()
	list := "[" + strings.Repeat(`"x",`, 5000) + `"x"]`
	req.JSON = func() ([]byte, error) {
		return []byte(`{"a": ` + list + `, "s": "` + strings.Repeat("x", 1<<20) + `"}`), nil
	}
	for _, when := range []string{
		`request.json.a.all(x, request.json.a.all(y, x == y))`,
		`request.json.a.all(x, size(request.json.s) > 0)`,
		`request.json.a.map(x, request.json.s + x).size() > 0`,
		`request.json.a.all(x, request.json.s.contains("xxxxxxxxxxy") || true)`,
		`request.json.a.all(x, request.json.s.matches("(x+x+)+y") || true)`,
		`request.json.s.matches("(x+x+)+(x+x+)+y")`,
		`request.json.a.all(x, !("y" in request.json.a))`,
		`request.json.a.all(x, request.json.a == request.json.a)`,
	} {
		if got, failures := applies(t, when, req); !got || failures != 1 {
			t.Errorf("%s is %v with %d failures", when, got, failures)
		}
	}
}

// What is wrong with an expression is found when the rules are parsed, at its place.
func TestInvalidExpressions(t *testing.T) {
	deep := strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200)
	for when, want := range map[string]string{
		`request.metod == "x"`:                            `1:21: error: match: when: request has no field metod; did you mean "method"?`,
		`request.colour == "x"`:                           `1:21: error: match: when: request has no field colour; use one of attributes, headers, host, ip, json, method, path, query, size, tier, user`,
		`true && request . metod == "x"`:                  `1:29: error: match: when: request has no field metod; did you mean "method"?`,
		`response.status == 401`:                          `1:21: error: match: when: the response is not known yet; only cost: actual can read it`,
		`foo == 1`:                                        `1:21: error: match: when: foo is not known here; read fields of request, as in request.method`,
		`request.size`:                                    `1:21: error: match: when: the result is of type int; write an expression that is true or false`,
		`request.size == "x"`:                             `1:34: error: match: when: found no matching overload for '_==_' applied to '(int, string)'; correct the expression`,
		`request.size >`:                                  `1:35: error: match: when: mismatched input 'end'; correct the expression`,
		`request.headers.Authorization == "x"`:            `1:21: error: match: when: the header Authorization is a secret, which no rule can read; use key: api_key, or an attribute of your application`,
		`request.headers["cookie"] == "x"`:                `1:21: error: match: when: the header cookie is a secret, which no rule can read; use key: api_key, or an attribute of your application`,
		`has(request.headers.x)`:                          `1:25: error: match: when: names in request.headers can only be looked up; write request.headers["x"], which is "" if there is none, or "x" in request.headers`,
		`request.query.all(x, true)`:                      `1:21: error: match: when: names in request.query can only be looked up; write request.query["x"], which is "" if there is none, or "x" in request.query`,
		`request.headers.?x.orValue("") == ""`:            `names in request.headers can only be looked up`,
		`request.headers == request.headers`:              `names in request.headers can only be looked up`,
		`size(request.attributes) > 0`:                    `names in request.attributes can only be looked up`,
		`request.path.matches(request.headers["x"])`:      `the pattern of matches is computed; write it as a text in quotes`,
		`request.path.matches("(a{999}){1}b{999}c{999}")`: `the pattern of matches is too large; use smaller repetitions`,
		`request.path.matches("(")`:                       `error parsing regexp`,
		deep:                                              `E027`,
		strings.Repeat("1+", 600) + "1 == 1":              `1206 bytes exceed the maximum of 1024; shorten it`,
	} {
		_, problems := rule.ParseRule("", fmt.Appendf(nil, `{"match": {"when": %s}, "id": "a", "key": "ip", "limit": "5/1m"}`, quoted(when)))
		if got := problems.String(); !strings.HasPrefix(got, want) && !strings.Contains(got, want) {
			t.Errorf("%s: %s\nwant %s", when, got, want)
		}
	}
}

// quoted is a text in JSON. Quotes in it are single, so that columns stay what they are.
func quoted(text string) string { return `"` + strings.ReplaceAll(text, `"`, "'") + `"` }

// The number of expressions of a document is bounded.
func TestTooManyExpressions(t *testing.T) {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range rule.MaxExpressions + 1 {
		fmt.Fprintf(&b, "- {id: r%d, key: ip, limit: 5/1m, match: {when: request.size > %d}}\n", i, i)
	}
	_, problems := rule.Parse("", []byte(b.String()))
	if len(problems) != 1 || problems[0].Code != "E002" {
		t.Errorf("%.500s", problems)
	}
	b.Reset()
	b.WriteString("rules:\n")
	for i := range 65 {
		fmt.Fprintf(&b, "- {id: r%d, key: ip, limit: %[1]d/1d, match: {when: '\"%[2]s\" == \"\"'}}\n", i+1, strings.Repeat("x", 1010))
	}
	_, problems = rule.Parse("", []byte(b.String()))
	if len(problems) == 0 || problems[0].Code != "E002" {
		t.Errorf("%.500s", problems)
	}
}
