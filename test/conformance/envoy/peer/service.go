// Package peer builds and runs envoyproxy/ratelimit, to compare weir with it.
package peer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

// Service is a running envoyproxy/ratelimit.
type Service struct {
	GRPC string // host:port
	HTTP string // host:port, of /json

	process *testkit.Child
	log     string // the file of what it says
}

// Start starts the service with files of configuration, by name, on the Redis at an
// address. It returns when the service answers. Settings are as in its README, such as
// "SHADOW_MODE=true".
func Start(ctx context.Context, p Programs, dir, redis string, settings ...string) (*Service, error) {
	var err error
	for range 5 {
		// Ports cannot be left to it, and another process may be faster.
		var s *Service
		if s, err = start(ctx, p, dir, redis, settings); err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// Layout makes the directories that the service wants, and returns the root and the
// directory that the files belong into.
func Layout(root string) (string, error) {
	config := filepath.Join(root, "ratelimit", "config")
	if err := os.MkdirAll(config, 0o755); err != nil {
		return "", fmt.Errorf("peer: %w", err)
	}
	return config, nil
}

func start(ctx context.Context, p Programs, root, redis string, settings []string) (*Service, error) {
	var addrs, ports [3]string
	for i := range addrs {
		addr, err := testredis.FreeAddr()
		if err != nil {
			return nil, fmt.Errorf("peer: %w", err)
		}
		_, port, _ := net.SplitHostPort(addr)
		addrs[i], ports[i] = addr, port
	}
	s := &Service{GRPC: addrs[0], HTTP: addrs[1], log: filepath.Join(root, "service-"+ports[0]+".log")}
	var err error
	s.process, err = testkit.Start(p.Service, nil, s.log, append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
		"HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1",
		"GRPC_PORT=" + ports[0], "PORT=" + ports[1], "DEBUG_PORT=" + ports[2],
		"RUNTIME_ROOT=" + root, "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_WATCH_ROOT=false",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis,
		"USE_STATSD=false", "DISABLE_STATS=true", "LOG_LEVEL=warn",
	}, settings...)...)
	if err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	if err := s.await(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// await waits until the service is healthy and listens for gRPC.
func (s *Service) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if s.isUp() {
			return nil
		}
		select {
		case <-s.process.Done():
			return fmt.Errorf("peer: the service ended:\n%s", s.Output())
		case <-ctx.Done():
			return fmt.Errorf("peer: the service does not answer: %w\n%s", ctx.Err(), s.Output())
		case <-tick.C:
		}
	}
}

func (s *Service) isUp() bool {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + s.HTTP + "/healthcheck")
	if err != nil {
		return false
	}
	resp.Body.Close()
	conn, err := net.Dial("tcp", s.GRPC)
	if err != nil {
		return false
	}
	return conn.Close() == nil && resp.StatusCode == http.StatusOK
}

// Stop ends the service, and waits until it has.
func (s *Service) Stop() { s.process.Kill() }

// Process is the number of its process.
func (s *Service) Process() int { return s.process.PID() }

// Output is what the service has said.
func (s *Service) Output() string {
	said, _ := os.ReadFile(s.log)
	return string(said)
}
