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
	"time"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/internal/testredis"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/program"
	"github.com/weirhq/weir/test/conformance/envoy/peer"
)

// The names of the contestants.
const (
	doesNothing = "a gRPC server that does nothing"
	weirMemory  = "weir, memory"
	weirRedis   = "weir, Redis"
	theirs      = "envoyproxy/ratelimit"
	theirsTuned = theirs + ", tuned"
)

// patience keeps a run from failing because the machine, which is busy all the time, for
// once leaves a process waiting for longer than the 50 ms that a check may take.
const patience = "?timeout=1s"

// configuration is that of all contestants.
const configuration = `
domain: bench
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 1000000000}
`

// field holds the contestants.
type field struct {
	testing.TB
	options
	progress    command.Progress
	contestants []*contestant
}

// contestant is a service that is measured.
type contestant struct {
	name, address string
	processes     []int // its own, and that of its Redis
	lean          *lean
	stock         *stock
}

// start starts all contestants.
func (h *field) start(ctx context.Context) {
	root := h.TempDir()
	config := testcall.Must(peer.Layout(root))(h)
	testcall.OK(h, os.WriteFile(filepath.Join(config, "bench.yaml"), []byte(configuration), 0o644))
	h.startTheirs(ctx, root)
	h.startNothing(ctx)
	redis := testredis.Start(h)
	weir := program.Build(h)
	h.startWeir(weirMemory, weir, config, "memory://")
	h.startWeir(weirRedis, weir, config, "redis://"+redis.Addr+patience, redis.PID())
}

// startTheirs starts the other service with its own settings, and with those that suit
// many callers best: a connection to Redis for each, and writes gathered.
func (h *field) startTheirs(ctx context.Context, root string) {
	programs := testcall.Must(peer.Build(ctx, root))(h)
	start := func(name string, settings ...string) {
		redis := testredis.Start(h)
		service := testcall.Must(peer.Start(ctx, programs, root, redis.Addr, settings...))(h)
		h.Cleanup(service.Stop)
		h.add(name, service.GRPC, service.Process(), redis.PID())
	}
	start(theirs)
	start(theirsTuned,
		fmt.Sprintf("REDIS_POOL_SIZE=%d", h.callers), "REDIS_PIPELINE_WINDOW=150us", "REDIS_PIPELINE_LIMIT=8", "LOG_LEVEL=error")
}

// startWeir starts weir with its own settings, and so with metrics and statistics.
func (h *field) startWeir(name, path, config, store string, others ...int) {
	weir := program.Serve(h, path, h.TempDir(), program.GRPC,
		"--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--envoy-config", config, "--store", store)
	h.add(name, weir.Address, append(others, weir.PID)...)
}

// startNothing starts this program as a contestant.
func (h *field) startNothing(ctx context.Context) {
	c := exec.CommandContext(ctx, testcall.Must(os.Executable())(h))
	c.Env = append(os.Environ(), serveVariable+"=1")
	c.Stderr = os.Stderr
	in, out := testcall.Must(c.StdinPipe())(h), testcall.Must(c.StdoutPipe())(h)
	testcall.OK(h, c.Start())
	h.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait() // it ends without an error, or has said which
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		h.Fatalf("%s did not say where it listens: %v", doesNothing, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	h.add(doesNothing, strings.TrimSpace(address), c.Process.Pid)
}

func (h *field) add(name, address string, processes ...int) {
	h.contestants = append(h.contestants, &contestant{name: name, address: address, processes: processes})
}

// connect connects the clients with all contestants.
func (h *field) connect() {
	messages, encoded := requests(h, h.values)
	for _, c := range h.contestants {
		c.lean = dialLean(h, c.address, encoded, h.options)
		c.stock = dialStock(h, c.address, messages)
	}
}

// busy returns the CPU time of its processes; 0 if unknown.
func (c *contestant) busy() (sum time.Duration) {
	for _, p := range c.processes {
		used, err := machine.CPU(p)
		if err != nil {
			return 0
		}
		sum += used
	}
	return sum
}
