package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/compile"
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/internal/testredis"
)

// rules are of a limit that nobody reaches.
const rules = "rules: [{id: api, match: {path: /api/**}, key: user, limit: 1000000000/1s}]\n"

// contestant is a command to a server.
type contestant struct {
	name, address string
	words         []string // the command; KEY is replaced by one of the keys
	process       int
}

const (
	incr     = "Redis, INCR"
	throttle = "weir, CL.THROTTLE"
	check    = "weir, WEIR.CHECK"
)

const key = "KEY"

// start starts both servers.
func start(t testing.TB) []contestant {
	redis := testredis.Start(t)
	address, process := startWeir(t)
	return []contestant{
		{incr, redis.Addr, []string{"INCR", key}, redis.PID()},
		{throttle, address, []string{"CL.THROTTLE", key, "1000000000", "1000000000", "1"}, process},
		{check, address, []string{"WEIR.CHECK", "path", "/api/orders", "user", key}, process},
	}
}

// startWeir builds the program as releases are built, and runs it as anybody would.
func startWeir(t testing.TB) (address string, process int) {
	dir := t.TempDir()
	root := testcall.Must(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/weirhq/weir").Output())(t)
	build := compile.Weir(strings.TrimSpace(string(root)), compile.Host, filepath.Join(dir, "weir"))
	build.Stderr = os.Stderr
	testcall.OK(t, build.Run())
	testcall.OK(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o600))

	c := exec.Command(filepath.Join(dir, "weir"), "serve", "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "127.0.0.1:0", "--log-level", "error")
	c.Dir, c.Stderr = dir, os.Stderr
	out := testcall.Must(c.StdoutPipe())(t)
	testcall.OK(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait() // it ends without an error, or has said which
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address, found := strings.CutPrefix(lines.Text(), "weir listens for Redis clients on "); found {
			return address, c.Process.Pid
		}
	}
	t.Fatal("weir did not say where it listens")
	return "", 0
}
