package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readPage reads a document of the repository.
func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cells are the rows of the tables in a text, by their first cell.
func cells(text string) map[string][]string {
	rows := map[string][]string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "|") {
			continue
		}
		row := strings.Split(strings.Trim(line, "|"), "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		rows[row[0]] = row[1:]
	}
	return rows
}

// The figures in the README's comparison are those that were measured last.
func TestDocsFigures(t *testing.T) {
	_, text, _ := strings.Cut(readPage(t, "README.md"), "## Compared with others\n")
	text = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(text, "$1")
	shown := cells(text)
	memory, redis := cells(readPage(t, "test/bench/results/summary.txt")), cells(readPage(t, "test/bench/results/redis-summary.txt"))
	for name, measured := range map[string][2]string{
		"weir":                 {"weir token_bucket", "weir token_bucket"},
		"throttled":            {"throttled (GCRA)", "throttled (GCRA)"},
		"ulule/limiter":        {"ulule/limiter", "ulule/limiter"},
		"go-chi/httprate":      {"go-chi/httprate", ""},
		"sethvargo/go-limiter": {"sethvargo/go-limiter", ""},
		"redis_rate":           {"", "redis_rate"},
	} {
		row := shown[name]
		if len(row) != 6 {
			t.Errorf("README.md compares %s in %q", name, row)
			continue
		}
		var want [3]string
		if m := memory[measured[0]]; m != nil {
			keys := strings.Fields(m[0]) // of one key, of a thousand, of a million
			want[0], want[1] = keys[0]+", "+keys[2], m[5]
		}
		if m := redis[measured[1]]; m != nil {
			want[2] = m[0]
		}
		if got := [3]string(row[3:]); got != want {
			t.Errorf("README.md has %q for %s, and measured was %q", got, name, want)
		}
	}
}

// authz asks as a proxy would.
func authz(t *testing.T, p *process, path string, headers ...string) answer {
	t.Helper()
	return ask(t, client(t), "GET", p.URL+"/v1/authz", "", append(headers, "X-Original-URI", path)...)
}

// The headers in the guide for public APIs are those that its rules give.
func TestDocsPublicAPI(t *testing.T) {
	block := regexp.MustCompile("(?s)## What clients see\n.*?```text\n(.*?)```").FindStringSubmatch(readPage(t, "docs/guides/public-api.md"))
	if block == nil {
		t.Fatal("the guide shows no headers")
	}
	dir := t.TempDir()
	rules := write(t, dir, "rules.yaml", readPage(t, "examples/rules/public-api.yaml"))
	p := start(t, dir, "serve", "--http", "127.0.0.1:0", "--rules", rules, "--trusted-proxies", "127.0.0.1", "--tier-header", "X-Tier")
	answer := authz(t, p, "/v1/items", "X-Forwarded-For", "198.51.100.7", "X-API-Key", "a key", "X-Tier", "pro")
	for line := range strings.Lines(block[1]) {
		name, want, _ := strings.Cut(strings.TrimSpace(line), ": ")
		got := answer.Header.Get(name)
		if name == "X-RateLimit-Reset" && len(got) == len(want) {
			continue // a time
		}
		if got != want {
			t.Errorf("%s is %q, and the guide shows %q", name, got, want)
		}
	}
}

// Without a store, clients see what docs/explanation/failure.md says.
func TestDocsFailure(t *testing.T) {
	dir := t.TempDir()
	text := "rules:\n"
	for _, how := range []string{"open", "closed", "local"} {
		text += fmt.Sprintf("  - {id: %s, match: {path: /%[1]s}, key: ip, algorithm: sliding_log, limit: 1/1h, on_failure: %[1]s}\n", how)
	}
	p := start(t, dir, "serve", "--http", "127.0.0.1:0", "--rules", write(t, dir, "rules.yaml", text), "--store", "redis://127.0.0.1:1")
	rows := cells(readPage(t, "docs/explanation/failure.md"))
	says := func(row string, column int, parts ...string) {
		t.Helper()
		for name, row2 := range rows {
			if strings.HasPrefix(name, row) {
				for _, part := range parts {
					if !strings.Contains(row2[column], part) {
						t.Errorf("the page does not say %q in the row of %s: %q", part, row, row2[column])
					}
				}
				return
			}
		}
		t.Errorf("there is no row of %s", row)
	}
	for column, c := range []struct {
		how    string
		check  []string // what the answer of /v1/check has, as the page writes it
		status int      // of /v1/authz
		header []string
	}{
		{"open", []string{"allowed: true", "degraded: true", "asked: false"}, 200, []string{"X-RateLimit-Degraded: 1"}},
		{"closed", []string{"allowed: false", "reason: unavailable", "status: 503", "retry_after_ms: 5000"}, 503, []string{"Retry-After: 5", "X-RateLimit-Degraded: 1"}},
		{"local", []string{"degraded: true"}, 200, []string{"X-RateLimit-Degraded: 1"}},
	} {
		got := ask(t, client(t), "POST", p.URL+"/v1/check", fmt.Sprintf(`{"ip": "192.0.2.1", "path": "/%s"}`, c.how))
		bare := strings.ReplaceAll(strings.ReplaceAll(got.Text, `"`, ""), ":", ": ")
		for _, part := range c.check {
			if !strings.Contains(bare, part) {
				t.Errorf("%s: there is no %q in %s", c.how, part, got.Text)
			}
		}
		says("`POST /v1/check`", column, c.check...)
		answer := authz(t, p, "/"+c.how)
		if answer.Status != c.status {
			t.Errorf("%s: %d %s", c.how, answer.Status, answer.Text)
		}
		for _, part := range c.header {
			name, want, _ := strings.Cut(part, ": ")
			if got := answer.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", c.how, name, got)
			}
		}
		if limit := answer.Header.Get("X-RateLimit-Limit"); (limit != "") != (c.how == "local") {
			t.Errorf("%s: X-RateLimit-Limit is %q", c.how, limit)
		}
		says("[`/v1/authz`]", column, c.header...)
	}
	if answer := authz(t, p, "/local"); answer.Status != 429 {
		t.Errorf("the second request is %d", answer.Status)
	}
}
