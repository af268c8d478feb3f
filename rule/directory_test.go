package rule_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
)

const acme = `
{"client": "api_key:k1", "parent": "user:ann"}
{"client": "api_key:k2", "parent": "user:ann", "tier": "trial"}
{"client": "user:ann", "parent": "team:blue", "limits": {"api": "5/1m", "more": ["1/1s", "9/1h"]}}
{"client": "team:blue", "parent": "org:acme"}
{"client": "org:acme", "tier": "pro", "zone": "Europe/Berlin", "starts": 15, "note": "contract 4711"}
{"client": "user:eve", "parent": "org:closed"}
{"client": "org:closed", "blocked": true}
{"client": "attr:customer:42", "parent": "org:acme"}
`

func directory(t testing.TB, name, text string) *rule.Directory {
	t.Helper()
	d, problems, err := rule.ReadDirectory(name, strings.NewReader(text))
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	return d
}

func TestDirectory(t *testing.T) {
	d := directory(t, "clients.ndjson", acme)
	if d.Len() != 8 {
		t.Errorf("it has %d clients", d.Len())
	}
	var line []string
	for _, c := range d.Line("api_key:k1") {
		line = append(line, c.Name)
	}
	if got := strings.Join(line, " "); got != "api_key:"+rule.HashAPIKey("k1")+" user:ann team:blue org:acme" {
		t.Errorf("the line is %s", got)
	}
	if c := d.Line("org:acme")[0]; c.Tier != "pro" || c.Starts != "15" || c.Zone != "Europe/Berlin" || c.Note != "contract 4711" {
		t.Errorf("org:acme is %+v", c)
	}
	if c := d.Line("user:ann")[0]; len(c.Limits) != 2 || c.Limits[0].Rule != "api" || fmt.Sprint(c.Limits[1].Quota.Texts()) != "[1/1s 9/1h]" {
		t.Errorf("user:ann is %+v", c)
	}
	yaml := directory(t, "clients.yaml", "clients:\n- {client: \"user:ann\", parent: \"org:acme\", limits: {api: {limit: 100/1m, burst: 5}}}\n- client: org:acme\n")
	if line := yaml.Line("user:ann"); len(line) != 2 || line[0].Limits[0].Quota.Burst != 5 {
		t.Errorf("the line of YAML is %+v", line)
	}
	if directory(t, "clients.yaml", "").Len() != 0 || directory(t, "clients.ndjson", "\n\n").Len() != 0 {
		t.Error("an empty file has clients")
	}
}

// Each mistake is reported with its line and a remedy, all at once.
func TestDirectoryMistakes(t *testing.T) {
	lines := []struct{ line, want string }{
		{`{"client": "user:a", "parent": "user:b"}`, `of the same kind`},
		{`{"client": "user:b"}`, ``},
		{`{"client": "user:b"}`, `is in line 2, too`},
		{`{"client": "org:c", "parent": "org:c"}`, `belongs to "org:c", and so to itself`},
		{`{"client": "org:x", "parent": "team:x"}`, `belongs to "team:x", and so to itself`},
		{`{"client": "team:x", "parent": "org:x"}`, `belongs to "org:x", and so to itself`},
		{`{"client": "user:d", "parent": "org:nobody"}`, `"org:nobody" is not in the file`},
		{`{"client": "user:e", "teir": "pro"}`, `did you mean "tier"?`},
		{`{"client": "ip:10.0.0.1"}`, `write a client as`},
		{`{"client": "user:"}`, `write a client as`},
		{`{"client": "attr:x"}`, `write for example "attr:customer:42"`},
		{`{"client": "user:f", "zone": "Europe/Berlni"}`, `Berl`},
		{`{"client": "user:g", "starts": "noon"}`, `is not where a period can start`},
		{`{"client": "user:h", "limits": {"api": "5"}}`, `limits: api: limit`},
		{`{"client": "user:i", "limits": {"api": {"limit": "5/1m", "priority": "high"}}}`, `has no field "priority"`},
		{`{"client": "user:j", "blocked": "yes"}`, `write true or false`},
		{`{"client": "user:k"`, `invalid JSON`},
		{`{"parent": "user:b"}`, `client: required`},
		{`{"client": "` + strings.Repeat("u", 40) + `:x"}`, `write a client as`},
		{`{"client": "user:` + strings.Repeat("u", 300) + `"}`, `longer than 256 bytes`},
		{`["user:l"]`, `this is a list`},
		{`{"client": "l1:m", "parent": "l2:m"}`, `more than 5 levels above it`},
		{`{"client": "l2:m", "parent": "l3:m"}`, ``}, {`{"client": "l3:m", "parent": "l4:m"}`, ``}, {`{"client": "l4:m", "parent": "l5:m"}`, ``},
		{`{"client": "l5:m", "parent": "l6:m"}`, ``}, {`{"client": "l6:m", "parent": "l7:m"}`, ``}, {`{"client": "l7:m"}`, ``},
	}
	var text strings.Builder
	for _, l := range lines {
		text.WriteString(l.line + "\n")
	}
	d, problems, err := rule.ReadDirectory("clients.ndjson", strings.NewReader(text.String()))
	if d != nil || err != nil {
		t.Fatal("it was read", err)
	}
	for i, l := range lines {
		var found []string
		for _, p := range problems {
			if p.Line == i+1 {
				found = append(found, p.Message)
			}
		}
		if got := strings.Join(found, "; "); (l.want == "") != (got == "") || !strings.Contains(got, l.want) {
			t.Errorf("line %d, %.60s: %q, want %q", i+1, l.line, got, l.want)
		}
	}
}

// What is wrong is told without a part of the line, which was not kept.
func TestDirectoryExcerpts(t *testing.T) {
	_, problems, _ := rule.ReadDirectory("x.ndjson", strings.NewReader(`{"client": "user:ann", "parnet": "org:acme"}`))
	const want = `x.ndjson:1:24: error: a client has no field "parnet"; did you mean "parent"?`
	if got := strings.TrimSpace(problems.String()); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

// A message never has an API key in clear text.
func TestDirectorySecrets(t *testing.T) {
	_, problems, _ := rule.ReadDirectory("x.ndjson", strings.NewReader(`{"client": "api_key:hush", "parent": "api_key:hush"}
{"client": "api_key:hush", "tier": ["hush"], "parent": "api_key:hush2"}`))
	if len(problems) == 0 || strings.Contains(problems.String(), "hush") {
		t.Errorf("the problems are %s", problems)
	}
}

// What is too large is refused while it is read.
func TestDirectoryBounds(t *testing.T) {
	for name, text := range map[string]string{
		"line":  `{"client": "user:a", "note": "` + strings.Repeat("x", 70_000) + `"}`,
		"kinds": numbered(70, func(i int) string { return fmt.Sprintf(`{"client": "kind%d:a"}`, i) }),
		"rules": `{"client": "user:a", "limits": {` + strings.TrimSuffix(numbered(65, func(i int) string { return fmt.Sprintf(`"r%d": "1/1s",`, i) }), ",\n") + `}}`,
	} {
		if d, problems, err := rule.ReadDirectory("x.ndjson", strings.NewReader(text)); d != nil || len(problems) == 0 {
			t.Errorf("%s: %v %v", name, problems, err)
		}
	}
	if d, problems, _ := rule.ReadDirectory("x.ndjson", strings.NewReader(numbered(3000, func(i int) string { return `{"client": "nobody"}` }))); d != nil || len(problems) > 1001 {
		t.Errorf("there are %d problems", len(problems))
	}
}

func numbered(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i))
		b.WriteByte('\n')
	}
	return strings.ReplaceAll(b.String(), ",\n", ",")
}

func TestResolve(t *testing.T) {
	d := directory(t, "clients.ndjson", acme)
	for _, c := range []struct {
		name       string
		request    rule.Request
		said       bool
		user, tier string
		known      bool
		blocked    bool
	}{
		{"an API key alone", rule.Request{APIKey: "k1"}, false, "ann", "pro", true, false},
		{"the nearest tier", rule.Request{APIKey: "k2"}, false, "ann", "trial", true, false},
		{"a client does not choose", rule.Request{APIKey: "k1", User: "bob", Tier: "gold"}, false, "ann", "pro", true, false},
		{"who is trusted does", rule.Request{APIKey: "k1", User: "bob", Tier: "gold"}, true, "bob", "gold", true, false},
		{"a user alone", rule.Request{User: "ann"}, false, "ann", "pro", true, false},
		{"an attribute", rule.Request{User: "carl", Attributes: map[string]string{"customer": "42"}}, false, "carl", "pro", true, false},
		{"an unknown key beside a known user", rule.Request{User: "ann", APIKey: "new"}, false, "ann", "pro", false, false},
		{"an unknown key beside a known one", rule.Request{APIKey: "k1", OtherAPIKeys: []string{"new"}}, false, "ann", "pro", false, false},
		{"a key that is a client's name", rule.Request{APIKey: "user:ann"}, false, "", "", false, false},
		{"a hash sent as the key", rule.Request{APIKey: rule.HashAPIKey("k1")}, false, "", "", false, false},
		{"nobody", rule.Request{}, false, "", "", false, false},
		{"a blocked organization", rule.Request{User: "eve", Tier: "gold"}, false, "eve", "gold", true, true},
	} {
		found := c.request.Resolve(d, c.said)
		if user, tier := c.request.Client(); user != c.user || tier != c.tier || found.Known != c.known || found.Blocked != c.blocked {
			t.Errorf("%s: user %q, tier %q, %+v", c.name, user, tier, found)
		}
		c.request.Resolve(nil, false)
		if user, tier := c.request.Client(); user != c.request.User || tier != c.request.Tier {
			t.Errorf("%s: without a directory, user %q and tier %q", c.name, user, tier)
		}
	}
	req := rule.Request{APIKey: "k1"}
	if n := testing.AllocsPerRun(100, func() { req.Resolve(d, false) }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}

// A million clients take at most 250 bytes each.
func TestDirectorySize(t *testing.T) {
	n := 20_000
	var text strings.Builder
	for i := range n / 2 {
		fmt.Fprintf(&text, `{"client": "api_key:%s", "parent": "user:customer-%d"}`+"\n", rule.HashAPIKey(fmt.Sprint(i)), i)
		fmt.Fprintf(&text, `{"client": "user:customer-%d", "tier": "pro", "starts": %d}`+"\n", i, i%28+1)
	}
	source := text.String()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	d := directory(t, "clients.ndjson", source)
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / float64(n)
	t.Logf("%.0f bytes for each of %d clients", each, d.Len())
	if each > 250 {
		t.Errorf("%.0f bytes each", each)
	}
	runtime.KeepAlive(source)
}
