package rule_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

func TestProblemsReadLikeACompilers(t *testing.T) {
	_, problems := rule.Parse("rules.yaml", []byte("rules:\n  - id: login\n    key: ip\n    limit: 5/1x\n"))
	want := `rules.yaml:4:12: error: limit: bad duration "1x"; write a number and a unit (us, ms, s, m, h, d, w), like 1m or 1h30m [E013]
        limit: 5/1x
               ^
`
	if got := problems.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if p := problems[len(problems)-1]; p.Rule != "login" || p.Field != "limit" || p.Line != 4 || p.Column != 12 || p.Excerpt != "    limit: 5/1x\n           ^" {
		t.Errorf("got %+v", p)
	}
	if got := (rule.Problem{Message: "m", Code: "E001"}).String(); got != "error: m [E001]" {
		t.Errorf("without a place: %q", got)
	}
}

func TestErrIsAboutErrorsOnly(t *testing.T) {
	_, problems := rule.Parse("a.yaml", []byte("rules:\n  - {id: login, key: ip, limit: 5/1m}\n"))
	if problems.Err() != nil || len(problems.Warnings()) != 1 || len(problems.Errors()) != 0 {
		t.Errorf("a warning is no error: %v", problems)
	}
	set, problems := rule.Parse("a.yaml", []byte("rules:\n  - {id: login, key: ip, limit: 5/1m}\n  - {id: a, kee: ip, limit: 5/1x}\n  - {id: b, key: ip}\n"))
	var invalid *rule.InvalidError
	if err := problems.Err(); set != nil || !errors.As(err, &invalid) || len(invalid.Problems) != 3 {
		t.Fatalf("got %v, %v", set, err)
	}
	want := `rule: a.yaml:3:13: error: a rule has no field "kee"; did you mean "key"? [E005], and 2 more errors`
	if got := invalid.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	invalid.Problems = invalid.Problems[:2]
	if got := invalid.Error(); !strings.HasSuffix(got, ", and another error") {
		t.Errorf("got %q", got)
	}
	invalid.Problems = invalid.Problems[:1]
	if got := invalid.Error(); !strings.HasSuffix(got, "[E005]") {
		t.Errorf("got %q", got)
	}
}

func TestProblemsInJSON(t *testing.T) {
	_, problems := rule.Parse("a.yaml", []byte("rulez: []\n"))
	got, err := json.Marshal(problems)
	want := `[{"severity":"error","code":"E005","file":"a.yaml","line":1,"column":1,"field":"rulez","message":"the document has no field \"rulez\"; did you mean \"rules\"?","excerpt":"rulez: []\n^"}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

// The codes are in order, each once, and say all that they have to say in sentences.
func TestCodes(t *testing.T) {
	last := ""
	for _, c := range rule.Codes() {
		if c.Name <= last || len(c.Name) != 4 {
			t.Errorf("%s comes after %s", c.Name, last)
		}
		last = c.Name
		for _, sentence := range []string{c.Meaning, c.Remedy} {
			if !strings.HasSuffix(sentence, ".") && !strings.HasSuffix(sentence, "cut -c1-32") || sentence[0] < 'A' || sentence[0] > 'Z' {
				t.Errorf("%s: %q is no sentence", c.Name, sentence)
			}
		}
		if c.Title == "" || strings.HasSuffix(c.Title, ".") {
			t.Errorf("%s: %q is no title", c.Name, c.Title)
		}
	}
	if _, found := rule.LookUp("E999"); found {
		t.Error("E999 was found")
	}
	if c, found := rule.LookUp("W006"); !found || c.Title != "login rule fails open" {
		t.Errorf("got %+v", c)
	}
}

// A problem names the field at fault as it is written.
func TestProblemsNameTheirField(t *testing.T) {
	for source, want := range map[string]string{
		"{id: a, key: ip, limit: 5/1x}":                                            "limit",
		"{id: a, key: ip, limits: [5/1m, 5/1x]}":                                   "limits",
		"{id: a, key: ip}":                                                         "limit",
		"{id: a, key: ip, limit: 5/1m, burst: 0}":                                  "burst",
		"{id: a, key: ip, limit: 5/1m, buckets: 3}":                                "buckets",
		"{id: a, key: ip, limit: 5/1m, kee: 3}":                                    "kee",
		"{id: a, key: ip, limit: 5/1m, cost: 9}":                                   "cost",
		"{id: a, key: [ip, ip], limit: 5/1m}":                                      "key",
		"{id: a, key: ip, limit: 5/1m, match: {path: a}}":                          "match.path",
		"{id: a, key: ip, limit: 5/1m, match: {path: '/{'}}":                       "match.path",
		"{id: a, key: ip, limit: 5/1m, match: {pth: /a}}":                          "match.pth",
		"{id: a, key: ip, limit: 5/1m, match: []}":                                 "match",
		"{id: a, key: ip, limit: 5/1m, match: {attributes: {action: [a, \"*\"]}}}": "match.attributes.action",
		"{id: a, key: ip, limit: 5/1m, match: {attributes: {'': a}}}":              "match.attributes",
		"{id: a, key: ip, limit: 5/1m, tiers: {pro: {limit: 5/1x}}}":               "tiers.pro.limit",
		"{id: a, key: ip, limit: 5/1m, tiers: {pro: {limit: 5/1m, brst: 3}}}":      "tiers.pro.brst",
		"{id: a, key: ip, limit: 5/1m, overrides: {'user:x': 5/1s}}":               "overrides",
		"{id: a, key: ip, limit: 5/1m, deny: {status: 200}}":                       "deny.status",
		"[]": "",
	} {
		_, problems := rule.ParseRule("", []byte(source))
		if len(problems) != 1 || problems[0].Field != want {
			t.Errorf("%s: got %+v, want one in %q", source, problems, want)
		}
	}
	_, problems := rule.Parse("", []byte("exempt: {ip: [x]}\nblck: {}\nrules: 3\n"))
	if len(problems) != 3 || problems[0].Field != "exempt.ip" || problems[1].Field != "blck" || problems[2].Field != "rules" {
		t.Errorf("got %+v", problems)
	}
}
