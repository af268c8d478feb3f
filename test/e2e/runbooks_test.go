package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit/testredis"
)

// The commands of docs/guides/runbooks.md work, one after the other, on a weir with tokens and a Redis.
func TestRunbooks(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	dir, redis := t.TempDir(), testredis.Start(t)
	write(t, dir, "rules.yaml", perUser)
	write(t, dir, "tokens", "alice admin "+token+"\n")
	write(t, dir, "token", token+"\n")
	p := start(t, dir, "serve", "--http", "127.0.0.1:0", "--rules", "rules.yaml", "--admin-token-file", "tokens",
		"--store", "redis://"+redis.Addr+"?timeout=10s")
	if a := ask(t, client(t), "POST", p.URL+"/v1/check", alice, "Weir-Token", token); !a.Allowed {
		t.Fatalf("%d %s", a.Status, a.Text)
	}
	commands := regexp.MustCompile(`(?m)^    (.+)$`).FindAllStringSubmatch(readPage(t, "docs/guides/runbooks.md"), -1)
	if len(commands) < 12 {
		t.Errorf("only %d commands were found", len(commands))
	}
	here := strings.NewReplacer("http://127.0.0.1:8080", p.URL, "10.0.0.5:6379", redis.Addr, "/var/lib/weir", dir)
	script := "set -e\n"
	for _, c := range commands {
		script += here.Replace(c[1]) + "\n"
	}
	cmd := exec.Command("sh", "-xc", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// weir and Redis have answered, not only exited.
	for _, part := range []string{"ready\n", "\nPONG", "maxmemory_policy:", "cmdstat_", "1 rule in 1 file, 0 warnings", "5/1h"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("there is no %q in\n%s", part, out)
		}
	}
}
