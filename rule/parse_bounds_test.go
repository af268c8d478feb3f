package rule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
)

func TestBounds(t *testing.T) {
	few := "rules:\n" + strings.Repeat("  - {key: ip}\n", 3)
	for _, c := range []struct{ name, source, want string }{
		{"large", strings.Repeat("#", rule.MaxDocument+1), "bytes, at most 4194304 are read"},
		{"rules", "rules: [" + strings.Repeat("{},", rule.MaxRules+1) + "]", "rules: there are 100001, at most 100000 are taken"},
		{"nesting", "rules: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested deeper than 16 levels"},
		{"deeper", "rules: " + strings.Repeat("[", 50_000), "no"},
		{"methods", manyMethods(), "all rules together name 65 different ones"},
		{"key", "rules: [{key: [" + strings.Repeat("ip,", 100) + "]}]", "key: it has 100 parts, at most 8"},
		{"limits", "rules: [{limits: [" + strings.Repeat("5/1m,", 100) + "]}]", "limits: there are 100, at most 16"},
		{"encoding", few + "\xff", "this is not UTF-8"},
	} {
		set, problems := rule.Parse("x.yaml", []byte(c.source))
		if set != nil || !strings.Contains(problems.String(), c.want) {
			t.Errorf("%s: got %.300s; want %q", c.name, problems, c.want)
		}
	}
}

func manyMethods() string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range 65 {
		fmt.Fprintf(&b, "  - {id: a%d, key: ip, limit: 5/1m, match: {method: M%d}}\n", i, i)
	}
	return b.String()
}

// A thousand problems are enough, and warnings make no errors.
func TestProblemsAreBounded(t *testing.T) {
	set, problems := rule.Parse("", []byte("rules: ["+strings.Repeat("{},", 5000)+"]"))
	if set != nil || len(problems) != 1001 || !strings.Contains(problems[0].String(), "there are 14000 more errors") {
		t.Errorf("%d problems, the first is %v", len(problems), problems[0])
	}
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "  - {id: login-%d, key: ip, limit: %d/1m}\n", i, i+1)
	}
	set, problems = rule.Parse("", []byte(b.String()))
	if set == nil || len(problems) != 1001 || problems.Err() != nil || problems[0].Code != "W000" {
		t.Errorf("%d problems, the first is %v", len(problems), problems[0])
	}
}

// No message is longer than a thousand bytes, and no excerpt than a screen, however
// long what they are about is.
func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("ü", 100_000)
	for _, source := range []string{
		long + ": 1", "rules: [{" + long + ": 1}]", "rules: [{id: " + long + "}]", "rules: [{limit: " + long + "}]", "rules: [{key: [" + long + "]}]",
		"rules: [{key: header:" + long + "}]", "rules: [{algorithm: " + long + "}]", "rules: [{match: {path: /" + long + "}}]", "rules: [{match: {host: " + long + "}}]",
		"rules: [{match: {method: " + long + "}}]", "rules: [{tiers: {" + long + ": x}}]", "rules: [{key: ip, overrides: {" + long + ": x}}]", "exempt: {ip: [" + long + "]}",
		"rules: [{key: ip, overrides: {'" + strings.Repeat("|", 1000) + "': x}}]", "rules: [{match: {path: '" + strings.Repeat("/{", 500) + "'}}]",
		"a: *" + long, "a: &" + long + " b", "a: !" + long + " b", "rules: [{mode: " + long[:1000] + "}]", "rules: [{algorithm: " + long[:1000] + "}]", "{\"" + long, "rules: [{burst: " + strings.Repeat("9", 5000) + "}]",
	} {
		_, problems := rule.Parse("", []byte(source))
		if problems.Err() == nil {
			t.Errorf("%.40q is no error", source)
		}
		for _, p := range problems {
			if len(p.Message) > 1000 || len(p.Excerpt) > 1000 || len(p.Rule) > 100 {
				t.Errorf("%.40q: %d bytes of message, %d of excerpt", source, len(p.Message), len(p.Excerpt))
			}
		}
	}
}

// Hostile documents are read in a time in proportion to their size. The bound is
// generous; what it is to find takes a hundred times as long as it should.
func TestHostileDocuments(t *testing.T) {
	size := 1 << 17
	if testing.Short() {
		size = 1 << 16
	}
	times := func(s string) string { return strings.Repeat(s, size/len(s)) }
	numbered := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, source := range map[string]string{
		"tabs": "a: \"" + times("\t") + "b\"", "empty lines": "a: |\n  x" + times("\n"), "directives": numbered("%%TAG !a%d! b\n"),
		"names": "rules:\n  - overrides:\n" + numbered("      user:%d: 5/1m\n"), "near names": numbered("rules%d: 1\n"), "one name": "rules:\n" + times("  a: 1\n"),
		"brackets": times("["), "braces": times("{a: "), "dashes": times("- "), "questions": times("? "), "colons": times(": "),
		"comments": times("#\n"), "comments after": "rules:\n" + times(" - b #c\n"), "anchors": numbered("- &a%d x\n"), "aliases": "- &a x\n" + times("- *a\n"),
		"good with comments": "exempt:\n  user:\n" + numbered("  - u%d # c\n # d\n    # e\n"),
		"documents":          times("---\n"), "carriage returns": times("\r"), "commas": "[" + times("a,"), "escapes": "\"" + times("\\n"), "tags": times("!a "),
		"addresses": "exempt: {ip: [" + numbered("10.0.0.%d,") + "]}", "keys": "exempt: {api_key: [" + numbered("k%d,") + "]}\nrules: [" + times("{},") + "]",
		"keys in one line":  "{\"exempt\": {\"api_key\": [" + strings.TrimSuffix(numbered("\"k%d\","), ",") + "]}, \"block\": {\"ip\": [" + strings.Repeat("1,", 1000) + "1]}}",
		"rules in one line": "{\"rules\": [" + times("{\"id\":\"a\"},") + "{}]}", "paths": "rules: [{match: {path: [" + numbered("/a%d,") + "]}}]",
	} {
		begin := time.Now()
		_, problems := rule.Parse("", []byte(source))
		rule.FormatSource("", []byte(source))
		if took := time.Since(begin); took > 15*time.Second {
			t.Errorf("%s: it took %v to find %d problems", name, took, len(problems))
		} else {
			t.Logf("%-20s %8v %d problems", name, took.Round(time.Millisecond), len(problems))
		}
	}
}
