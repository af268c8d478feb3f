package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	filerepo "github.com/weirhq/weir/internal/rules/repo/file"
)

var update = flag.Bool("update", false, "write the answers in docs/reference/api.md again")

const docs = "../../../docs/reference/api.md"

// An example is a call, and what it answers.
var (
	example  = regexp.MustCompile("(?s)```sh\n(curl [^\n]*)\n```\n\n```(json|text)\n(.*?)```\n")
	rulesDoc = regexp.MustCompile("(?s)```yaml\n(rules:.*?)```\n")
	written  = regexp.MustCompile(`"time": "[^"]*"`)
	drawn    = regexp.MustCompile(`"id": "([0-9a-f]{16})"`)
	tag      = regexp.MustCompile(`"version": "[^"]*"`)
	held     = regexp.MustCompile(`"hold": "([0-9a-f]{32})"`)
)

func TestDocs(t *testing.T) {
	doc, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/rules.yaml"
	if err := os.WriteFile(path, rulesDoc.FindSubmatch(doc)[1], 0o600); err != nil {
		t.Fatal(err)
	}
	repository, err := filerepo.Open(path, filerepo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newStatsStand(t, Options{StoreKind: "memory", Leases: someLeases, Service: manage.Service{Rules: repository}})
	examples := 0
	now := example.ReplaceAllStringFunc(string(doc), func(block string) string {
		examples++
		part := example.FindStringSubmatch(block)
		if strings.Contains(part[1], "/v1/stats/") {
			s.pass(1) // what has happened is over
		}
		if strings.Contains(part[1], "/v1/stats/suggest") {
			s.pass(60) // the period of the limit
		}
		got := s.curl(t, part[1])
		if got != written.ReplaceAllString(part[3], `"time": "2026-01-01T00:00:00Z"`) && !*update {
			t.Errorf("%s\nanswers\n%s\nrun go test ./internal/server/httpapi -update, if that is right", part[1], got)
		}
		return fmt.Sprintf("```sh\n%s\n```\n\n```%s\n%s```\n", part[1], part[2], got)
	})
	if calls := strings.Count(string(doc), "```sh\n"); examples != calls || calls < 10 {
		t.Errorf("%d of %d examples were run", examples, calls)
	}
	if *update && now != string(doc) {
		if err := os.WriteFile(docs, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// word is one of a shell's words.
var word = regexp.MustCompile(`'([^']*)'|(\S+)`)

// curl does what curl would, as far as the examples need it.
func (s *stand) curl(t *testing.T, line string) string {
	t.Helper()
	var method, target, body, format string
	var headers []string
	words := word.FindAllStringSubmatch(line, -1)[1:]
	next := func() string {
		w := words[0][1] + words[0][2]
		words = words[1:]
		return w
	}
	for len(words) > 0 {
		switch w := next(); w {
		case "-s":
		case "-o":
			next()
		case "-X":
			method = next()
		case "-H":
			headers = append(headers, next())
		case "-w":
			format = next()
		case "-d":
			body = strings.Replace(next(), exampleHold, s.held, 1)
			if method == "" {
				method = "POST"
			}
		default:
			var ok bool
			if target, ok = strings.CutPrefix(w, "http://127.0.0.1:8080"); !ok {
				t.Fatalf("%s: what is %s?", line, w)
			}
			target = strings.Replace(target, exampleID, s.drawn, 1)
		}
	}
	if method == "" {
		method = "GET"
	}
	r := s.call(method+" "+target, body, headers...)
	if format != "" {
		return strings.NewReplacer("%{http_code}", fmt.Sprint(r.StatusCode), `\n`, "\n").Replace(format)
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, r.body, "", "  ") != nil {
		return string(r.body)
	}
	if id := drawn.FindSubmatch(pretty.Bytes()); id != nil {
		s.drawn = string(id[1])
	}
	if id := held.FindSubmatch(pretty.Bytes()); id != nil {
		s.held = string(id[1])
	}
	text := drawn.ReplaceAllString(pretty.String(), `"id": "`+exampleID+`"`)
	text = tag.ReplaceAllString(text, `"version": "`+exampleTag+`"`)
	text = held.ReplaceAllString(text, `"hold": "`+exampleHold+`"`)
	return written.ReplaceAllString(text, `"time": "2026-01-01T00:00:00Z"`)
}

// These stand for ids that are drawn by lot.
const (
	exampleID   = "5f0c9a3e7b21d846"
	exampleTag  = "4f2a91c07be35d68"
	exampleHold = "0d9b1c6f52a84e37b6f0c2d18e4a7395"
)

// The page lists every route and every problem, and none that is not there.
func TestDocsAreComplete(t *testing.T) {
	doc, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, r := range routes() {
		right := map[access]string{public: "none", proxied: "check", checking: "check", asking: "none", signing: "none", looking: "read", using: "use", reading: "read", changing: "admin", browsing: "read, clients", registering: "clients"}[r.needs]
		name := r.pattern()
		if r.method == "" {
			name = "ANY " + r.path
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | ", name, right))
	}
	kinds := slices.DeleteFunc(slices.Clone(fault.Kinds()), func(k *fault.Kind) bool { return k.Status == 0 })
	for _, k := range kinds {
		rows = append(rows, fmt.Sprintf("| `%s%s` | %d | ", problemPrefix, k.Name, k.Status))
	}
	for _, row := range rows {
		if !strings.Contains(string(doc), "\n"+row) {
			t.Errorf("docs/reference/api.md lacks the line %s", row)
		}
	}
	if n := strings.Count(string(doc), "\n| `"+problemPrefix); n != len(kinds) {
		t.Errorf("docs/reference/api.md lists %d problems, there are %d", n, len(kinds))
	}
	if !strings.Contains(string(doc), fmt.Sprintf("weir keeps the last %d versions", repo.MaxHistory)) {
		t.Error("docs/reference/api.md says something else about how many versions are kept")
	}
}
