package respapi

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/rule"
)

var update = flag.Bool("update", false, "write the answers in docs/reference/resp.md again")

const docs = "../../../docs/reference/resp.md"

// An example is a call of redis-cli, and what it prints on a terminal.
var (
	example  = regexp.MustCompile("(?s)```sh\nredis-cli ([^\n]*)\n```\n\n```text\n(.*?)```\n")
	document = regexp.MustCompile("(?s)```yaml\n(rules:.*?)```\n")
)

func TestDocs(t *testing.T) {
	doc, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	set, problems := rule.Parse("", document.FindSubmatch(doc)[1])
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newStand(t, Options{})
	s.engine.Install(table, 1)
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	now := example.ReplaceAllStringFunc(string(doc), func(block string) string {
		examples++
		part := example.FindStringSubmatch(block)
		out, err := exec.Command("redis-cli", append([]string{"--no-raw"}, strings.Fields(strings.Replace(part[1], "6380", port, 1))...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", part[1], err, out)
		}
		if string(out) != part[2] && !*update {
			t.Errorf("redis-cli %s\nprints\n%s\nrun go test ./internal/server/respapi -update, if that is right", part[1], out)
		}
		return fmt.Sprintf("```sh\nredis-cli %s\n```\n\n```text\n%s```\n", part[1], out)
	})
	if calls := strings.Count(string(doc), "```sh\n"); examples != calls || calls < 6 {
		t.Errorf("%d of %d examples were run", examples, calls)
	}
	if *update && now != string(doc) {
		if err := os.WriteFile(docs, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The page has every command, and every word with which an error begins.
func TestDocsAreComplete(t *testing.T) {
	doc, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commands[:len(commands)-1] {
		if !strings.Contains(string(doc), "`"+strings.ToUpper(c.name)+"`") {
			t.Errorf("%s is not described", c.name)
		}
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	fails := regexp.MustCompile(`w\.fail\("(\w+)"`)
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		code, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fails.FindAllSubmatch(code, -1) {
			if !strings.Contains(string(doc), "| `"+string(m[1])+"` |") {
				t.Errorf("the error %s is not described", m[1])
			}
		}
	}
}
