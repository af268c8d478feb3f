package rule_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
)

func TestBounds(t *testing.T) {
	few := "rules:\n" + strings.Repeat("  - {key: ip}\n", 3)
	for _, c := range []struct{ name, source, want string }{
		{"large", strings.Repeat("#", rule.MaxDocument+1), "bytes; the maximum is 4194304"},
		{"rules", "rules:\n" + strings.Repeat("- {}\n", rule.MaxRules+1), "rules: 30001 rules exceed the maximum of 30000"},
		{"rules in JSON", `{"rules": [` + strings.Repeat("{},", rule.MaxRules) + "{}]}", "rules: 30001 rules exceed the maximum of 30000"},
		{"overrides", manyOverrides(), "100001 tiers, overrides and levels exceed the maximum of 100000"},
		{"values", "rules: [" + strings.Repeat("{},", 50_000) + "]", "about 100003 values within brackets or in one text begin here; the maximum is 32000"},
		{"nesting", "rules: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "more than 16 levels of nesting"},
		{"deeper", "rules: " + strings.Repeat("[", 20_000), "reduce the nesting"},
		{"methods", manyMethods(), "all rules together have 65 different methods"},
		{"key", "rules: [{key: [" + strings.Repeat("ip,", 100) + "]}]", "key: 100 parts exceed the maximum of 8"},
		{"limits", "rules: [{limits: [" + strings.Repeat("5/1m,", 100) + "]}]", "limits: 100 limits exceed the maximum of 16"},
		{"encoding", few + "\xff", "invalid UTF-8"},
	} {
		set, problems := rule.Parse("x.yaml", []byte(c.source))
		if set != nil || !strings.Contains(problems.String(), c.want) {
			t.Errorf("%s: got %.300s; want %q", c.name, problems, c.want)
		}
	}
}

func manyOverrides() string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range 2 {
		fmt.Fprintf(&b, "- id: a%d\n  key: user\n  limit: 5/1m\n  overrides:\n", i)
		for j := range rule.MaxOverrides/2 + i {
			fmt.Fprintf(&b, "    user:%d: 7/1m\n", j)
		}
	}
	return b.String()
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

// shapes are documents of about so many bytes that cost as much as can be. They are made
// when they are needed: what lies around lets garbage gather.
func shapes(size int) map[string]func() string {
	times := func(s string) string { return strings.Repeat(s, size/len(s)) }
	numbered := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len()+len(format)+10 < size; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	return map[string]func() string{
		"tabs":               func() string { return "a: \"" + times("\t") + "b\"" },
		"empty lines":        func() string { return "a: |\n  x" + times("\n") },
		"directives":         func() string { return numbered("%%TAG !a%d! b\n") },
		"names":              func() string { return "rules:\n  - overrides:\n" + numbered("      user:%d: 5/1m\n") },
		"near names":         func() string { return numbered("rules%d: 1\n") },
		"one name":           func() string { return "rules:\n" + times("  a: 1\n") },
		"brackets":           func() string { return times("[") },
		"braces":             func() string { return times("{a: ") },
		"dashes":             func() string { return times("- ") },
		"questions":          func() string { return times("? ") },
		"colons":             func() string { return times(": ") },
		"comments":           func() string { return times("#\n") },
		"comments after":     func() string { return "rules:\n" + times(" - b #c\n") },
		"anchors":            func() string { return numbered("- &a%d x\n") },
		"aliases":            func() string { return "- &a x\n" + times("- *a\n") },
		"good with comments": func() string { return "exempt:\n  user:\n" + numbered("  - u%d # c\n # d\n    # e\n") },
		"documents":          func() string { return times("---\n") },
		"carriage returns":   func() string { return times("\r") },
		"commas":             func() string { return "[" + times("a,") },
		"escapes":            func() string { return "\"" + times("\\n") },
		"tags":               func() string { return times("!a ") },
		"addresses":          func() string { return "exempt: {ip: [" + numbered("10.0.0.%d,") + "]}" },
		"keys":               func() string { return "exempt: {api_key: [" + numbered("k%d,") + "]}\nrules: [" + times("{},") + "]" },
		"keys in one line": func() string {
			return "{\"exempt\": {\"api_key\": [" + strings.TrimSuffix(numbered("\"k%d\","), ",") + "]}, \"block\": {\"ip\": [" + strings.Repeat("1,", 1000) + "1]}}"
		},
		"rules in one line":           func() string { return "{\"rules\": [" + times("{\"id\":\"a\"},") + "{}]}" },
		"paths":                       func() string { return "rules: [{match: {path: [" + numbered("/a%d,") + "]}}]" },
		"names in braces":             func() string { return "{" + times("a,") + "}" },
		"names in braces, one a line": func() string { return "{\n" + times("a,\n") + "}" },
		"lists":                       func() string { return "rules:\n" + times("- []\n") },
		"empty":                       func() string { return "rules:\n" + times("-\n") },
		"members":                     func() string { return "rules:\n" + times(" a:\n") },
		"merged":                      func() string { return numbered("a%d: &a%[1]d {}\n<<: *a%[1]d\n") },
		"quoted":                      func() string { return times("\"a\": 'b'\n") },
		"long text":                   func() string { return "a: " + times("b") },
		"long texts":                  func() string { return "a: |\n" + times("  "+strings.Repeat("c", 1000)+"\n") },
		"rules":                       func() string { return "rules:\n" + numbered("- {id: a%d, key: ip, limit: %[1]d1/1m}\n") },
		"broken rules":                func() string { return "rules:\n" + numbered("- {id: %d}\n") },
		"deep":                        func() string { return "rules:\n" + times(" - - - - - - a\n") },
		"JSON numbers":                func() string { return "{\"a\":[" + times("1,") + "1]}" },
		"JSON names":                  func() string { return "{" + numbered("\"%d\":1,") + "\"a\":1}" },
		"JSON lists":                  func() string { return "[" + times("[],") + "[]]" },
		"JSON rules":                  func() string { return `{"rules": [` + numbered(`{"id":"a%d","key":"ip","limit":"5/%[1]dm"},`) + "{}]}" },
		"JSON lines":                  func() string { return "{" + times("\n") + "}" },
		"JSON overrides":              func() string { return `{"rules": [{"overrides":{` + numbered(`"%d":{},`) + `"a":{}}}]}` },
		"JSON depth":                  func() string { return times("[") },
		"block":                       func() string { return "block:\n  ip:\n" + numbered("  - 10.%d\n") },
		"users":                       func() string { return "exempt:\n  user:\n" + numbered("  - u%d\n") },
		"hosts":                       func() string { return "rules:\n- id: a\n  match:\n    host:\n" + numbered("    - a%d.example\n") },
		"tiers": func() string {
			return "rules:\n- id: a\n  key: ip\n  limit: 5/1m\n  tiers:\n" + numbered("    t%d: {limits: [5/1m, 7/1h], burst: 3}\n")
		},
		"long rules": func() string {
			return "rules:\n" + numbered("- id: rule-%d\n  description: This is a rule that was written with care, and says so\n  match:\n    host: api.example.com\n    path: [/v1/things/%[1]d, /v2/things]\n    method: [POST, PUT]\n  key: [ip, user]\n  algorithm: sliding_window\n  limits: [5/1m, 100/1h]\n  tiers: {pro: 100/1m, gold: 1000/1m}\n  deny: {status: 429, code: 1007, message: please slow down}\n")
		},
	}
}

// Hostile documents are read in a time in proportion to their size, and in a memory that
// is bounded, of whatever size they are. The bound on the time is generous; what it is to
// find takes a hundred times as long as it should. The race detector knows nothing of
// sizes: with it, documents are small here and below, and make test reads the large ones
// without.
func TestHostileDocuments(t *testing.T) {
	sizes := []int{1 << 17, rule.MaxDocument - 200}
	if testkit.Race {
		sizes = []int{1 << 13}
	}
	for _, size := range sizes {
		for name, shape := range shapes(size) {
			if size > 1<<17 && testing.Short() && name != "names in braces" && name != "hosts" {
				continue
			}
			source := []byte(shape())
			var problems rule.Problems
			var took time.Duration
			most := testkit.Least(rule.MaxMemory, func() {
				begin := time.Now()
				_, problems = rule.Parse("", source)
				took = time.Since(begin)
			})
			if size <= 1<<17 {
				ruleedit.Tidy("", source)
			}
			if took > 15*time.Second && size <= 1<<17 || most > rule.MaxMemory {
				t.Errorf("%s: it took %v and %d MiB to find %d problems", name, took, most>>20, len(problems))
			} else {
				t.Logf("%-28s %8v %3d MiB %d problems", name, took.Round(time.Millisecond), most>>20, len(problems))
			}
		}
	}
}

// A long document of good rules is read, within the same bound.
func TestLongDocument(t *testing.T) {
	size, want := rule.MaxDocument-200, 10_000
	if testkit.Race {
		size, want = size/40, want/40
	}
	source := []byte(shapes(size)["long rules"]())
	var set *rule.Set
	most := testkit.Least(rule.MaxMemory, func() { set, _ = rule.Parse("", source) })
	if set == nil || len(set.Rules) < want || most > rule.MaxMemory {
		t.Errorf("it took %d MiB, and there is a set: %t", most>>20, set != nil)
	}
}

// All documents that are parsed at the same time stay within a bound, too.
func TestManyDocumentsAtOnce(t *testing.T) {
	names, size := 15_000, 1<<17 // almost as much as is read at once
	if testkit.Race {
		names, size = names/10, size/10
	}
	source := []byte("{" + strings.Repeat("a,", names) + "}")
	good := []byte(shapes(size)["rules"]())
	const bound = 256 << 20
	most := testkit.Least(bound, func() {
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				if i%4 > 0 {
					rule.Parse("", source)
				} else if set, problems := rule.Parse("", good); set == nil {
					t.Errorf("a good document had to wait, and then was not read: %.300s", problems)
				}
			})
		}
		wg.Wait()
	})
	if most > bound {
		t.Errorf("%d MiB", most>>20)
	}
}
