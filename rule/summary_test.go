package rule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirhq/weir/rule"
)

func TestSummarize(t *testing.T) {
	const base = `
rules:
  - {id: login, key: ip, limit: 5/1m}
  - {id: api, match: {path: /api/**}, key: user, limits: [3/1m, 20/1h], tiers: {free: 1/1m}}
  - {id: all, key: global, limit: 1000/1s}
exempt: {user: [bob]}
`
	for _, c := range []struct{ change, want string }{
		{"", "nothing changed"},
		{"limit: 5/1m|limit: 10/1m", "login: limit 5/1m → 10/1m"},
		{"limits: [3/1m, 20/1h]|limit: unlimited", "api: limit 3/1m + 20/1h → unlimited"},
		{"limit: 5/1m|limit: 5/60s", "nothing changed"},
		{"limit: 5/1m|limit: 5/1m, mode: enforce", "nothing changed"},
		{"limit: 5/1m|limit: 5/1m, mode: shadow, burst: 9", "login: burst of the limit → 9, mode enforce → shadow"},
		{"[3/1m, 20/1h]|[3/1m, 30/1h]", "api: limit 3/1m + 20/1h → 3/1m + 30/1h"},
		{"limits: [3/1m, 20/1h]|limit: 3/1m", "api: limit 3/1m + 20/1h → 3/1m"},
		{"key: ip|key: [ip, 'header:X-Tenant']", "login: key ip → ip + header:X-Tenant"},
		{"limit: 5/1m|limit: 5/1m, overrides: {'ip:192.0.2.1': 9/1m}", "login: overrides changed"},
		{"/api/**|/v2/**", "api: match changed"},
		{"free: 1/1m|free: 2/1m", "api: tiers changed"},
		{"id: login|id: logon", "added logon; removed login"},
		{"bob|eve", "exempt changed"},
		{"exempt|block", "exempt changed; block changed"},
		{"  - {id: all, key: global, limit: 1000/1s}\n|", "removed all"},
		{"rules:\n|rules:\n  - {id: b, key: api_key, limit: 1/1s}\n  - {id: a, key: api_key, limit: 2/1s}\n", "added b, a"},
		{"5/1m|6/1m;1000/1s|2000/1s;bob|eve;id: api|id: API", "exempt changed; login: limit 5/1m → 6/1m; all: limit 1000/1s → 2000/1s; added API; removed api"},
	} {
		now := base
		for change := range strings.SplitSeq(c.change, ";") {
			from, to, _ := strings.Cut(change, "|")
			now = strings.Replace(now, from, to, 1)
		}
		if got := rule.Summarize(parsed(t, base), parsed(t, now)); got != c.want {
			t.Errorf("%s: %q, want %q", c.change, got, c.want)
		}
	}
	first, second := parsed(t, "rules: [{id: a, key: ip, limit: 5/1m}, {id: b, key: user, limit: 5/1m}]"), parsed(t, "rules: [{id: b, key: user, limit: 5/1m}, {id: a, key: ip, limit: 5/1m}]")
	if got := rule.Summarize(first, second); got != "order changed" {
		t.Errorf("another order: %q", got)
	}
	if got := rule.Summarize(nil, parsed(t, base)); got != "exempt changed; added login, api, all" {
		t.Errorf("from nothing: %q", got)
	}
	if got := rule.Summarize(parsed(t, base), nil); got != "exempt changed; removed login, api, all" {
		t.Errorf("to nothing: %q", got)
	}
}

// A summary leaves out no field of a rule.
func TestSummarizeEveryField(t *testing.T) {
	left := rule.FieldNames("rule")[1:] // without the id
	for _, r := range parsed(t, string(readFile(t, "testdata/parse/every-field.yaml"))).Rules {
		told := rule.Summarize(&rule.Set{Rules: []rule.Rule{{ID: r.ID}}}, &rule.Set{Rules: []rule.Rule{r}})
		left = slices.DeleteFunc(left, func(name string) bool {
			return strings.Contains(told, " "+name+" ") || name == "limits" && strings.Contains(told, " limit none → 3/1m + 20/1h")
		})
	}
	if len(left) > 0 {
		t.Errorf("no summary tells of %v", left)
	}
}

// However much has changed, a summary is one short line, and tells how much is left.
func TestSummarizeIsShort(t *testing.T) {
	big := func(n, limit int, prefix string) *rule.Set {
		var b strings.Builder
		b.WriteString("rules:\n")
		for i := range n {
			fmt.Fprintf(&b, "  - {id: %s%d, match: {path: /%s%d}, key: ip, limit: %d/1m}\n", prefix, i, prefix, i, limit)
		}
		return parsed(t, b.String())
	}
	long := strings.Repeat("é", 40)
	for _, c := range []struct {
		old, now *rule.Set
		end      string
	}{
		{big(1000, 5, "a"), big(1000, 6, "a"), "; more changes: 962"},
		{nil, big(1000, 5, "a"), "added a0, a1, a2, a3, a4 and 995 more"},
		{big(300, 5, "a"), big(400, 6, "a"), "; more changes: 263"},
	} {
		got := rule.Summarize(c.old, c.now)
		if len(got) > rule.MaxSummary || !utf8.ValidString(got) || !strings.HasSuffix(got, c.end) {
			t.Errorf("%d bytes: %s, want %s", len(got), got, c.end)
		}
	}
	keys := func(n int) *rule.Set {
		r := rule.Rule{ID: "a", Quota: rule.Quota{Rates: []rule.Rate{{N: 5, Period: 60e9}}}}
		for i := range n {
			r.Key = append(r.Key, rule.Source{Kind: rule.Attribute, Name: fmt.Sprint(long, i)})
		}
		return &rule.Set{Rules: []rule.Rule{r}}
	}
	if got := rule.Summarize(keys(30), keys(31)); len(got) > rule.MaxSummary || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// A reader of the history may not be allowed to see API keys, so summaries contain
// none.
func TestSummarizeHasNoSecrets(t *testing.T) {
	old := parsed(t, "rules: [{id: a, key: api_key, limit: 5/1m, overrides: {'api_key:s3cret-1': 6/1m}}]\nexempt: {api_key: [s3cret-2]}")
	now := parsed(t, "rules: [{id: a, key: api_key, limit: 5/1m, overrides: {'api_key:s3cret-3': 6/1m}}]\nexempt: {api_key: [s3cret-4]}")
	if got := rule.Summarize(old, now); got != "exempt changed; a: overrides changed" {
		t.Error(got)
	}
}

func parsed(t *testing.T, source string) *rule.Set {
	t.Helper()
	set, problems := rule.Parse("", []byte(source))
	if err := problems.Err(); err != nil {
		t.Fatalf("%v\n%s", err, source)
	}
	return set
}
