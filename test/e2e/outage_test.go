package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

// While Redis is unavailable, and after it has come back without its data, an operator
// sees what the instance knows: the rules in force, its own counts, since when and why.
func TestOperatorsSeeDuringAnOutage(t *testing.T) {
	redis := testredis.Start(t)
	dir := t.TempDir()
	p := start(t, dir, "serve", "--http", "127.0.0.1:0", "--store", "redis://"+redis.Addr+"?timeout=5s", "--rules", "redis")
	c := client(t)
	weir := func(args ...string) (stdout, stderr string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, "weir"), append(args, "--server", p.URL)...)
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("weir %s: %v\n%s%s", strings.Join(args, " "), err, &out, &errs)
		}
		return out.String(), errs.String()
	}
	weir("rules", "put", write(t, dir, "rules.yaml", perUser))
	if a := ask(t, c, "POST", p.URL+"/v1/check", alice); !a.Allowed || a.Degraded {
		t.Fatalf("%s", a.Text)
	}
	before, _ := weir("rules", "list")

	redis.Kill()
	// The log tells, and calls of the management are limited.
	waitFor(t, "the outage", func() bool {
		return ask(t, c, "POST", p.URL+"/v1/check", alice).Degraded && strings.Contains(p.log.String(), "could not save the statistics")
	})
	if list, note := weir("rules", "list"); list != before || !strings.Contains(note, "the store of the rules is unavailable") {
		t.Errorf("the rules in force are\n%s%s", list, note)
	}
	top, _ := weir("top", "--once")
	for _, part := range []string{"store unavailable since ", "figures of this instance only; ", "requests "} {
		if !strings.Contains(top, part) {
			t.Errorf("there is no %q in\n%s", part, top)
		}
	}

	redis.Restart() // without its data
	waitFor(t, "its return", func() bool {
		return !ask(t, c, "POST", p.URL+"/v1/check", `{"user": "bob"}`).Degraded && strings.Contains(p.log.String(), "statistics are saved again")
	})
	list, note := weir("rules", "list")
	if list != before || !strings.Contains(note, "version 0 is stored") || !strings.Contains(note, "applies version 1") {
		t.Errorf("after Redis has lost its data:\n%s%s", list, note)
	}
	source, _ := weir("rules", "get", "--in-force")
	weir("rules", "put", write(t, dir, "again.yaml", source))
	if _, note := weir("rules", "list"); note != "" {
		t.Errorf("after the rules were written back: %s", note)
	}
}

// While the rules file is broken, an operator sees that older rules are in force, since when and why,
// until it is repaired.
func TestOperatorsSeeBrokenRules(t *testing.T) {
	dir := t.TempDir()
	rules := write(t, dir, "rules.yaml", perUser)
	p := start(t, dir, "serve", "--http", "127.0.0.1:0", "--rules", rules)
	weir := func(args ...string) (stdout, stderr string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, "weir"), append(args, "--server", p.URL)...)
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("weir %s: %v\n%s%s", strings.Join(args, " "), err, &out, &errs)
		}
		return out.String(), errs.String()
	}
	before, note := weir("rules", "list")
	if health, _ := weir("health"); note != "" || health != "ready\n" {
		t.Fatalf("%s%s", note, health)
	}
	write(t, dir, "rules.yaml", "rules: [{id: api, keys: user, limit: 5/1h}]")
	waitFor(t, "the note", func() bool {
		var list string
		list, note = weir("rules", "list")
		return list == before && note != ""
	})
	if !strings.Contains(note, "the stored rules have failed to load since ") || !strings.Contains(note, "version 1 stays in force: ") || !strings.Contains(note, "rules.yaml:1:19: error: ") {
		t.Errorf("%s", note)
	}
	health, _ := weir("health")
	if !strings.HasPrefix(health, "ready\n--rules: the stored rules have failed to load since ") || strings.Contains(health, dir) || strings.Contains(health, "keys") {
		t.Errorf("%s", health)
	}
	if top, _ := weir("top", "--once"); !strings.Contains(top, "stored rules not loaded since ") {
		t.Errorf("%s", top)
	}
	page := openBrowser(t).open(p.URL, "")
	page.see(id("outage"), "have failed to load since")
	page.see(id("outage"), "rules.yaml:1:19")

	write(t, dir, "rules.yaml", perUser)
	waitFor(t, "the end of it", func() bool {
		_, note = weir("rules", "list")
		health, _ = weir("health")
		return note == "" && health == "ready\n" && page.count(id("outage")) == 0
	})
}
