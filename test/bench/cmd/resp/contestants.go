package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/internal/testredis"
	"github.com/weirhq/weir/test/bench/internal/program"
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
	dir := t.TempDir()
	testcall.OK(t, os.WriteFile(filepath.Join(dir, "rules.yaml"), []byte(rules), 0o600))
	weir := program.Serve(t, program.Build(t), dir, program.Redis, "--http", "127.0.0.1:0", "--grpc", "off", "--resp", "127.0.0.1:0")
	return []contestant{
		{incr, redis.Addr, []string{"INCR", key}, redis.PID()},
		{throttle, weir.Address, []string{"CL.THROTTLE", key, "1000000000", "1000000000", "1"}, weir.PID},
		{check, weir.Address, []string{"WEIR.CHECK", "path", "/api/orders", "user", key}, weir.PID},
	}
}
