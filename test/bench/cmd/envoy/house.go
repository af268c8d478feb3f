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

	"github.com/weirhq/weir/test/bench/internal/redisserver"
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

// house is where the contestants live.
type house struct {
	contestants []contestant
	undo        []func()
}

// contestant is a service to be asked.
type contestant struct {
	name, address string
	processes     []int // its own, and that of its Redis
}

func (h *house) close() {
	for len(h.undo) > 0 {
		last := h.undo[len(h.undo)-1]
		h.undo = h.undo[:len(h.undo)-1]
		last()
	}
}

// open starts all contestants.
func open(ctx context.Context, o options) (_ *house, err error) {
	h := &house{}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	root, err := os.MkdirTemp("", "weir-bench-envoy-")
	if err != nil {
		return nil, err
	}
	h.undo = append(h.undo, func() { _ = os.RemoveAll(root) })
	config, err := peer.Layout(root)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(config, "bench.yaml"), []byte(configuration), 0o644); err != nil {
		return nil, err
	}
	if err := h.startTheirs(ctx, root, o); err != nil {
		return nil, err
	}
	redis, err := redisserver.Start()
	if err != nil {
		return nil, err
	}
	h.undo = append(h.undo, redis.Stop)
	for _, c := range []struct {
		name, what string
		processes  []int
	}{
		{doesNothing, "nothing", nil}, {weirMemory, "memory", nil}, {weirRedis, "redis://" + redis.Addr + patience, []int{redis.Process()}},
	} {
		if err := h.startOurs(ctx, c.name, c.what, config, c.processes...); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// startTheirs starts the other service with its own settings, and with those that suit
// so many callers best: a connection to Redis for each, and writes gathered.
func (h *house) startTheirs(ctx context.Context, root string, o options) error {
	programs, err := peer.Build(ctx, root)
	if err != nil {
		return err
	}
	tuned := []string{
		fmt.Sprintf("REDIS_POOL_SIZE=%d", o.callers), "REDIS_PIPELINE_WINDOW=150us", "REDIS_PIPELINE_LIMIT=8", "LOG_LEVEL=error",
	}
	for _, c := range []struct {
		name     string
		settings []string
	}{
		{theirs, nil}, {theirs + ", tuned", tuned},
	} {
		redis, err := redisserver.Start()
		if err != nil {
			return err
		}
		h.undo = append(h.undo, redis.Stop)
		service, err := peer.Start(ctx, programs, root, redis.Addr, c.settings...)
		if err != nil {
			return err
		}
		h.undo = append(h.undo, service.Stop)
		h.contestants = append(h.contestants, contestant{c.name, service.GRPC, []int{service.Process(), redis.Process()}})
	}
	return nil
}

// startOurs starts this program as a contestant, which has other processes work for it.
func (h *house) startOurs(ctx context.Context, name, what, config string, others ...int) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, program)
	c.Env = append(os.Environ(), serveVariable+"="+what, configVariable+"="+config)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	h.undo = append(h.undo, func() {
		_ = in.Close()
		_ = c.Wait() // it ends without an error, or has said which
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("%s did not say where it listens: %w", name, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	h.contestants = append(h.contestants, contestant{name, strings.TrimSpace(address), append(others, c.Process.Pid)})
	return nil
}
