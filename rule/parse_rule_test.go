package rule_test

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/rule"
)

func TestParseRule(t *testing.T) {
	r, problems := rule.ParseRule("rule.json", []byte(`{"id": "a", "key": "header:X-Tenant", "limit": "5/1m", "cost": 2}`))
	// Alone, it is not to blame for what other rules there are.
	if len(problems) > 0 || r == nil || r.ID != "a" || r.Cost != 2 {
		t.Errorf("got %+v, %v", r, problems)
	}
	r, problems = rule.ParseRule("rule.yaml", []byte("id: login\nkey: ip\nlimit: 5/1m\n"))
	if r == nil || len(problems.Warnings()) != 1 {
		t.Errorf("got %+v, %v", r, problems)
	}
	for source, want := range map[string]string{
		"":          "a rule: this is empty",
		"rules: []": `a rule has no field "rules"`,
		"- id: a":   "a rule: this is a list",
		"id: a":     "key: required",
		"id: [":     "invalid YAML",
	} {
		if r, problems := rule.ParseRule("", []byte(source)); r != nil || !strings.Contains(problems.String(), want) {
			t.Errorf("%q: got %v, %v; want %q", source, r, problems, want)
		}
	}
}

// The examples have nothing that anybody would have to excuse.
func TestExamples(t *testing.T) {
	files := exampleFiles(t)
	if len(files) < 8 {
		t.Fatalf("only %d examples were found", len(files))
	}
	for _, file := range files {
		source := readFile(t, file)
		set, problems := rule.Parse(file, source)
		if len(problems) > 0 {
			t.Errorf("%s", problems)
			continue
		}
		if _, err := rule.Compile(set, rule.Options{}); err != nil {
			t.Error(err)
		}
		if tidy, _ := ruleedit.Tidy(file, source); string(tidy) != string(source) {
			t.Errorf("%s is not formatted; it should be\n%s", file, tidy)
		}
	}
}
