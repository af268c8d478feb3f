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

// house is where the contestants live.
type house struct {
	*testredis.House
	contestants []contestant
}

// contestant is a service to be asked.
type contestant struct {
	name, address string
	processes     []int // its own, and that of its Redis
}

// open starts all contestants.
func open(ctx context.Context, o options) (*house, error) {
	rooms, err := testredis.NewHouse("envoy")
	if err != nil {
		return nil, err
	}
	h := &house{House: rooms}
	if err := h.Try(func() { h.start(ctx, o) }); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *house) start(ctx context.Context, o options) {
	root := h.TempDir()
	config, err := peer.Layout(root)
	if err == nil {
		err = os.WriteFile(filepath.Join(config, "bench.yaml"), []byte(configuration), 0o644)
	}
	if err == nil {
		err = h.startTheirs(ctx, root, o)
	}
	redis := testredis.Start(h)
	for _, c := range []struct {
		name, what string
		processes  []int
	}{
		{doesNothing, "nothing", nil}, {weirMemory, "memory", nil}, {weirRedis, "redis://" + redis.Addr + patience, []int{redis.PID()}},
	} {
		if err == nil {
			err = h.startOurs(ctx, c.name, c.what, config, c.processes...)
		}
	}
	if err != nil {
		h.Fatal(err)
	}
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
		redis := testredis.Start(h)
		service, err := peer.Start(ctx, programs, root, redis.Addr, c.settings...)
		if err != nil {
			return err
		}
		h.Cleanup(service.Stop)
		h.contestants = append(h.contestants, contestant{c.name, service.GRPC, []int{service.Process(), redis.PID()}})
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
	h.Cleanup(func() {
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
