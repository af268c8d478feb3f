package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// makes runs make with a directory of its own for what it builds.
func makes(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("make", append([]string{"-C", "../..", "BIN=" + dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("make %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// The commands that make run shows do what is said of them, where weir listens, and the
// README shows the same ones, and the answer that they get.
func TestTry(t *testing.T) {
	dir := t.TempDir()
	makes(t, dir, dir+"/rules.yaml")
	p := start(t, dir, "serve", "--http", "127.0.0.1:0", "--rules", "rules.yaml", "--data", "data")
	commands := shown(t, dir, strings.TrimPrefix(p.URL, "http://"))
	if len(commands) != 3 {
		t.Fatalf("there are %d commands", len(commands))
	}
	run := func(command string) string {
		t.Helper()
		out, err := exec.Command("sh", "-c", command).CombinedOutput()
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
	readme, err := os.ReadFile("../../README.md")
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
		t.Errorf("it was not reset: %s", out)
	}
}

// shown is what make run shows to try when WEIR_HTTP is an address.
func shown(t *testing.T, dir, address string) (commands []string) {
	t.Helper()
	recipe := makes(t, dir, "-n", "run")
	if want := fmt.Sprintf("\n%s/weir serve --rules %[1]s/rules.yaml --data %[1]s/data\n", dir); !strings.Contains(recipe, want) {
		t.Errorf("make run is %s", recipe)
	}
	line := regexp.MustCompile(`(?m)^.*examples/try\.txt.*$`).FindString(recipe)
	say := func(address string) string {
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir, cmd.Env = "../..", append(os.Environ(), "WEIR_HTTP="+address)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	}
	text, err := os.ReadFile("../../examples/try.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := say(""); got != string(text) {
		t.Errorf("by default make run shows\n%s", got)
	}
	for line := range strings.Lines(say(address)) {
		if command, found := strings.CutPrefix(line, "  "); found {
			commands = append(commands, command)
		}
	}
	return commands
}

// make run works on a copy of the example: what is changed there stays, until there is a
// newer example.
func TestRunCopiesTheRules(t *testing.T) {
	const example = "../../examples/rules/quickstart.yaml"
	dir := t.TempDir()
	path := filepath.Join(dir, "rules.yaml")
	want := func(want string) {
		t.Helper()
		makes(t, dir, path)
		if got, err := os.ReadFile(path); string(got) != want {
			t.Errorf("the rules are %s, %v", got, err)
		}
	}
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	want(string(text))
	write(t, dir, "rules.yaml", "rules: []")
	want("rules: []")
	info, err := os.Stat(example)
	if err != nil {
		t.Fatal(err)
	}
	old := info.ModTime().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	want(string(text))
}

var numbers = regexp.MustCompile(`("(?:reset_at|reset_after_ms|retry_after_ms|remaining)":|in )\d+`)

// timeless is the beginning of an answer, without what differs from run to run.
func timeless(answer string) string {
	answer, _, _ = strings.Cut(answer, `"results"`)
	return numbers.ReplaceAllString(strings.NewReplacer("\n", "", "  \"", "\"", "\": ", "\":").Replace(strings.TrimSpace(answer)), "${1}N")
}
