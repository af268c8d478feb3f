package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a weir that runs until it is told to stop.
type process struct {
	URL     string // of the API
	GRPC    string // host and port for gRPC
	Gateway string // where requests come in that are to be passed on; "" if it is none

	cmd    *exec.Cmd
	log    *log
	exited chan struct{}
}

// log is what a process writes to standard error.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start runs weir in a directory, and waits until it listens.
func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return startAs(t, nil, dir, args...)
}

// startAs is start as another user.
func startAs(t *testing.T, who *syscall.SysProcAttr, dir string, args ...string) *process {
	t.Helper()
	p, err := launchAs(who, dir, os.Environ(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("weir %s wrote:\n%s", strings.Join(args, " "), p.log)
		}
	})
	return p
}

// launch is start for who has no testing.T.
func launch(dir string, environment []string, args ...string) (*process, error) {
	return launchAs(nil, dir, environment, args...)
}

func launchAs(who *syscall.SysProcAttr, dir string, environment []string, args ...string) (*process, error) {
	if !slices.Contains(args, "--grpc") && len(args) > 0 {
		args = append(slices.Clone(args), "--grpc", "127.0.0.1:0")
	}
	p := &process{cmd: exec.Command(filepath.Join(bin, "weir"), args...), log: &log{}, exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = dir, environment, p.log
	p.cmd.SysProcAttr = who
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	if p.URL, err = announced(lines, `^weir listens on (\S+)`); err == nil {
		p.GRPC, err = announced(lines, `^weir listens for gRPC on (\S+)`)
	}
	if err == nil && args[0] == "gateway" {
		p.Gateway, err = announced(lines, `^weir passes on what comes to (\S+)`)
	}
	go func() {
		io.Copy(io.Discard, lines)
		p.cmd.Wait()
		close(p.exited)
	}()
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("weir %s: %w\n%s", strings.Join(args, " "), err, p.log)
	}
	return p, nil
}

// announced reads a line that says where weir is.
func announced(lines *bufio.Reader, form string) (string, error) {
	line, err := lines.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("it ended before it listened: %w", err)
	}
	match := regexp.MustCompile(form).FindStringSubmatch(line)
	if match == nil {
		return "", fmt.Errorf("it says %q", line)
	}
	return match[1], nil
}

// kill ends it at once.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.exited
}

// stop tells it to stop, waits until it has, and returns its exit code.
func (p *process) stop(t *testing.T) int {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(60 * time.Second):
		p.kill()
		t.Fatal("weir did not stop")
	}
	return p.cmd.ProcessState.ExitCode()
}

// waitFor waits until something holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s never came", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
