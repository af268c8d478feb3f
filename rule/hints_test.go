package rule_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
	"pgregory.net/rapid"
)

// hints are the ways in which messages tell what to write instead of a value: in quotes, as a value that cannot be taken for
// prose, or as a range.
var hints = []*regexp.Regexp{
	regexp.MustCompile(`(?:write|or|for example|did you mean|is called) "([^"]+)"`),
	regexp.MustCompile(`(?:write|for example|such as|as in) ([^\s,;"]*[^a-z\s,;"][^\s,;"]*)(?:[,;]| for |$)`),
	regexp.MustCompile(`out of range; write (\S+) to (\S+)$`),
}

// partial are hints for a part of a value.
var partial = []string{"N/period", "{id}", "[3/1m"}

// What messages tell people to write is accepted: each hint in the golden files is put where the problem is.
func TestHintsAreAccepted(t *testing.T) {
	tried := 0
	for _, file := range goldenFiles(t) {
		source := string(readFile(t, file))
		_, problems := rule.Parse("", []byte(source))
		for _, p := range problems.Errors() {
			for _, hint := range hintsOf(p.Message) {
				fixed := replaceAt(source, p, hint)
				if fixed == "" || slices.Contains(partial, hint) || strings.Contains(p.Message, "given twice") {
					continue
				}
				tried++
				_, again := rule.Parse("", []byte(fixed))
				for _, q := range again {
					isRange := strings.Contains(p.Message, "out of range") && !strings.Contains(q.Message, "out of range")
					if q.Line == p.Line && q.Column == p.Column && q.Code == p.Code && !isRange {
						t.Errorf("%s:%d:%d: %s\n%q is not accepted: %s", file, p.Line, p.Column, p.Message, hint, q.Message)
					}
				}
			}
		}
	}
	if tried < 150 {
		t.Errorf("only %d hints were found", tried)
	}
}

func hintsOf(message string) (all []string) {
	for _, hint := range hints {
		for _, found := range hint.FindAllStringSubmatch(message, -1) {
			all = append(all, found[1:]...)
		}
	}
	return all
}

// replaceAt puts another value where a problem is; "" if no single value is there.
func replaceAt(source string, p rule.Problem, value string) string {
	lines := strings.Split(source, "\n")
	line := []rune(lines[p.Line-1])
	before, rest := string(line[:p.Column-1]), string(line[p.Column-1:])
	old := regexp.MustCompile(`^("(?:[^"\\]|\\.)*"|'[^']*'|[^\s,\]\[{}'":][^,\]}\n:]*(?::[^,\]}\s][^,\]}]*)?)`).FindString(rest)
	if old == "" {
		return ""
	}
	if !regexp.MustCompile(`^\d+$`).MatchString(value) {
		value = fmt.Sprintf("%q", value)
	}
	lines = slices.Clone(lines)
	lines[p.Line-1] = before + value + strings.TrimPrefix(rest, old)
	return strings.Join(lines, "\n")
}

// What a message about a path, a host or a key computes for people to write is accepted, whatever they wrote.
func TestComputedHintsAreAccepted(t *testing.T) {
	write := regexp.MustCompile(`(?:write|or|mean|called) "([^"]+)"`)
	for field, draw := range map[string]func(t *rapid.T) string{
		"match: {path: %q}, key: ip": func(t *rapid.T) string {
			segments := rapid.SliceOfN(rapid.SampledFrom([]string{"", "*", ":id", ":", "{id}", "api", "export*", "*.js", "**", "{", "?x", "..", "%2e", strings.Repeat("long", 8)}), 1, 6).Draw(t, "segments")
			return rapid.SampledFrom([]string{"", "/"}).Draw(t, "slash") + strings.Join(segments, "/")
		},
		"match: {host: %q}, key: [ip, host]": func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "*", ".", "*.", "b.com", ":", "80", "é", " ", "[", strings.Repeat("long", 8)}), 1, 5).Draw(t, "parts"), "")
		},
		"key: %q": func(t *rapid.T) string {
			kind := rapid.SampledFrom([]string{"ipp", "usr", "user", "heder", "cokie", "qery", "atr", "attribute", "plan", "client_ip", "gloabl", "x"}).Draw(t, "kind")
			return kind + rapid.SampledFrom([]string{"", ":", ":X Y", ":bob", ":" + strings.Repeat("long", 40)}).Draw(t, "name")
		},
	} {
		about := func(value string) rule.Problems {
			_, problems := rule.Parse("", fmt.Appendf(nil, "rules: [{id: a, limit: 5/1m, "+field+"}]", value))
			return problems.Errors()
		}
		rapid.Check(t, func(t *rapid.T) {
			value := draw(t)
			for _, p := range about(value) {
				for _, hint := range write.FindAllStringSubmatch(p.Message, -1) {
					if again := about(hint[1]); len(again) > 0 {
						t.Fatalf("%s\nbut then: %s", p.Message, again[0].Message)
					}
				}
			}
		})
	}
	for wrong, right := range map[string]string{
		"*": "/**", "/*": "/**", "api/*": "/api/**", "/api/*": "/api/**", ":id/x": "/{id}/x", "/:id/": "/{id}/**", "/a/*/c": "/a/{id}/c",
	} {
		_, said := rule.Parse("", fmt.Appendf(nil, "rules: [{id: a, key: ip, limit: 5/1m, match: {path: %q}}]", wrong))
		if len(said) != 1 || !strings.Contains(said[0].Message, `"`+right+`"`) {
			t.Errorf("%q: %v, want %q", wrong, said, right)
		}
	}
}

// What the remedies of codes show as fields of a rule is accepted.
func TestRemediesAreAccepted(t *testing.T) {
	shown := regexp.MustCompile(`\b([a-z_]+): ("[^"]*"|\{[^{}]*\}|\[[^\]]*\]|[^\s,{[":]+?)(?:[.,;]? |[.,;]?$)`)
	tried := 0
	for _, c := range rule.Codes() {
		for _, found := range shown.FindAllStringSubmatch(c.Remedy, -1) {
			if !slices.Contains(rule.FieldNames("rule"), found[1]) || found[1] == "id" {
				continue
			}
			tried++
			document := ""
			for field, value := range map[string]string{"key": "ip", "limit": "1000/1m", "concurrency": "50", "algorithm": "sliding_window", found[1]: found[2]} {
				document += ", " + field + ": " + value
			}
			if _, problems := rule.Parse("", []byte("rules: [{id: a"+document+"}]")); problems.Err() != nil {
				t.Errorf("%s: %s: %v", c.Name, found[0], problems)
			}
		}
	}
	if tried < 15 {
		t.Errorf("only %d fields were found", tried)
	}
}
