package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The commands that make run shows do what is said of them, and the README shows the
// same ones, and the answer that they get.
func TestTry(t *testing.T) {
	text, err := os.ReadFile("../examples/try.txt")
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for line := range strings.Lines(string(text)) {
		if command, found := strings.CutPrefix(line, "  "); found {
			commands = append(commands, command)
		}
	}
	if len(commands) != 3 {
		t.Fatalf("there are %d commands", len(commands))
	}
	rules, err := os.ReadFile("../examples/rules/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, "quickstart.yaml", string(rules))
	p := start(t, dir, "serve", "--http", "127.0.0.1:0", "--rules", "quickstart.yaml", "--data", "data")
	run := func(command string) string {
		t.Helper()
		out, err := exec.Command("sh", "-c", strings.ReplaceAll(command, "http://127.0.0.1:8080", p.URL)).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	}
	if out := run(commands[0]); !strings.Contains(out, `"allowed":true`) || !strings.Contains(out, `"rule":"api"`) {
		t.Errorf("%s\n%s", commands[0], out)
	}
	answers := strings.SplitAfter(strings.TrimSpace(run(commands[1])), "\n")
	if len(answers) != 6 {
		t.Fatalf("%d answers: %s", len(answers), answers)
	}
	for i, answer := range answers {
		if allowed := strings.Contains(answer, `{"allowed":true`); allowed != (i < 5) {
			t.Errorf("answer %d: %s", i+1, answer)
		}
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if shown := regexp.MustCompile("(?s)<!-- the sixth answer -->\n```json\n(.*?)```").FindStringSubmatch(string(readme)); shown == nil {
		t.Error("README.md does not show the sixth answer")
	} else if got, want := timeless(answers[5]), timeless(shown[1]); got != want {
		t.Errorf("README.md shows\n%s\nand the answer is\n%s", want, got)
	}
	if out := run(commands[2]); !strings.Contains(out, `"remaining":0`) || !strings.HasSuffix(strings.TrimSpace(out), `{"key":"ip:192.0.2.1","rules":["login"]}`) {
		t.Errorf("%s\n%s", commands[2], out)
	}
	if out := run(commands[1]); !strings.HasPrefix(out, `{"allowed":true`) {
		t.Errorf("it was not forgiven: %s", out)
	}
	if makefile, err := exec.Command("make", "-n", "-C", "..", "run").CombinedOutput(); err != nil ||
		!strings.Contains(string(makefile), "examples/try.txt") || !strings.Contains(string(makefile), "serve --rules examples/rules/quickstart.yaml") {
		t.Errorf("make run is %s, %v", makefile, err)
	}
}

var numbers = regexp.MustCompile(`("(?:reset_at|reset_after_ms|retry_after_ms|remaining)":|in )\d+`)

// timeless is the beginning of an answer, without what differs from run to run.
func timeless(answer string) string {
	answer, _, _ = strings.Cut(answer, `"results"`)
	return numbers.ReplaceAllString(strings.NewReplacer("\n", "", "  \"", "\"", "\": ", "\":").Replace(strings.TrimSpace(answer)), "${1}N")
}
