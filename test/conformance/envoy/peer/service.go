package peer

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Service is a running envoyproxy/ratelimit.
type Service struct {
	GRPC string // host:port
	HTTP string // host:port, of /json

	command *exec.Cmd
	done    chan struct{} // closed when it has ended
	output  output
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
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	s := &Service{GRPC: address(ports[0]), HTTP: address(ports[1]), done: make(chan struct{})}
	s.command = exec.CommandContext(ctx, p.Service)
	s.command.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
		"HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1",
		"GRPC_PORT=" + ports[0], "PORT=" + ports[1], "DEBUG_PORT=" + ports[2],
		"RUNTIME_ROOT=" + root, "RUNTIME_SUBDIRECTORY=ratelimit", "RUNTIME_WATCH_ROOT=false",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + redis,
		"USE_STATSD=false", "DISABLE_STATS=true", "LOG_LEVEL=warn",
	}, settings...)
	s.command.Stdout, s.command.Stderr = &s.output, &s.output
	s.command.SysProcAttr = attr()
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	go func() {
		_ = s.command.Wait() // how it ended is in its output
		close(s.done)
	}()
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
		if s.isUp(ctx) {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("peer: the service ended:\n%s", s.output.String())
		case <-ctx.Done():
			return fmt.Errorf("peer: the service does not answer: %w\n%s", ctx.Err(), s.output.String())
		case <-tick.C:
		}
	}
}

func (s *Service) isUp(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.HTTP+"/healthcheck", nil)
	if err != nil {
		return false
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", s.GRPC)
	if err != nil {
		return false
	}
	return conn.Close() == nil && resp.StatusCode == http.StatusOK
}

// Stop ends the service, and waits until it has.
func (s *Service) Stop() {
	_ = s.command.Process.Kill() // it may have ended
	<-s.done
}

// Process is the number of its process.
func (s *Service) Process() int { return s.command.Process.Pid }

// Output is what the service has said.
func (s *Service) Output() string { return s.output.String() }

// output keeps the last of what is written.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const maxOutput = 64 << 10

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	if extra := o.text.Len() - maxOutput; extra > 0 {
		o.text.Next(extra)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func address(port string) string { return net.JoinHostPort("127.0.0.1", port) }

// freePorts are ports on which nobody listens now.
func freePorts(n int) (ports []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("peer: %w", err)
		}
		defer l.Close() // all at once, so that they differ
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, fmt.Errorf("peer: %w", err)
		}
		ports = append(ports, port)
	}
	return ports, nil
}
