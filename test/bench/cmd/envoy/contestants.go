package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/internal/testredis"
	"github.com/weirhq/weir/test/conformance/envoy/peer"
)

// The names of contestants that are compared with.
const (
	doesNothing = "a gRPC server that does nothing"
	weirMemory  = "weir, memory"
	weirRedis   = "weir, Redis"
	theirs      = "envoyproxy/ratelimit"
)

// patience keeps a run from failing because the machine, which is busy all the time, for
// once leaves a process waiting for longer than the 50 ms that a check may take.
const patience = "?timeout=1s"

// field holds the contestants.
type field struct {
	testing.TB
	contestants []contestant
}

// contestant is a service that is measured.
type contestant struct {
	name, address string
	processes     []int // its own, and that of its Redis
}

// start starts all contestants.
func (h *field) start(ctx context.Context, o options) {
	root := h.TempDir()
	config := testcall.Must(peer.Layout(root))(h)
	testcall.OK(h, os.WriteFile(filepath.Join(config, "bench.yaml"), []byte(configuration), 0o644))
	h.startTheirs(ctx, root, o)
	redis := testredis.Start(h)
	h.startOurs(ctx, doesNothing, "nothing", config)
	h.startOurs(ctx, weirMemory, "memory", config)
	h.startOurs(ctx, weirRedis, "redis://"+redis.Addr+patience, config, redis.PID())
}

// startTheirs starts the other service with its own settings, and with those that suit
// so many callers best: a connection to Redis for each, and writes gathered.
func (h *field) startTheirs(ctx context.Context, root string, o options) {
	programs := testcall.Must(peer.Build(ctx, root))(h)
	start := func(name string, settings ...string) {
		redis := testredis.Start(h)
		service := testcall.Must(peer.Start(ctx, programs, root, redis.Addr, settings...))(h)
		h.Cleanup(service.Stop)
		h.contestants = append(h.contestants, contestant{name, service.GRPC, []int{service.Process(), redis.PID()}})
	}
	start(theirs)
	start(theirs+", tuned",
		fmt.Sprintf("REDIS_POOL_SIZE=%d", o.callers), "REDIS_PIPELINE_WINDOW=150us", "REDIS_PIPELINE_LIMIT=8", "LOG_LEVEL=error")
}

// startOurs starts this program as a contestant, which has other processes work for it.
func (h *field) startOurs(ctx context.Context, name, what, config string, others ...int) {
	c := exec.CommandContext(ctx, testcall.Must(os.Executable())(h))
	c.Env = append(os.Environ(), serveVariable+"="+what, configVariable+"="+config)
	c.Stderr = os.Stderr
	in, out := testcall.Must(c.StdinPipe())(h), testcall.Must(c.StdoutPipe())(h)
	testcall.OK(h, c.Start())
	h.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait() // it ends without an error, or has said which
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		h.Fatalf("%s did not say where it listens: %v", name, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	h.contestants = append(h.contestants, contestant{name, strings.TrimSpace(address), append(others, c.Process.Pid)})
}
