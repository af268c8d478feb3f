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
	RESP    string // host and port for Redis clients; "" if there are none
	Gateway string // where requests come in that are to be passed on; "" if it is none

	cmd       *exec.Cmd
	log       *log
	listening chan error // told once
	exited    chan struct{}
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
	cmd := exec.Command(filepath.Join(bin, "weir"), withGRPC(args)...)
	cmd.Env, cmd.SysProcAttr = environment, who
	p, err := begin(cmd, dir)
	if err != nil {
		return nil, err
	}
	return p, p.listens()
}

// withGRPC has gRPC listen on any free port, unless the arguments say where.
func withGRPC(args []string) []string {
	if !slices.Contains(args, "--grpc") && len(args) > 0 {
		args = append(slices.Clone(args), "--grpc", "127.0.0.1:0")
	}
	return args
}

// begin runs a command that is a weir, or becomes one, in a directory.
func begin(cmd *exec.Cmd, dir string) (*process, error) {
	p := &process{cmd: cmd, log: &log{}, exited: make(chan struct{}), listening: make(chan error, 1)}
	cmd.Dir, cmd.Stderr = dir, p.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		lines := bufio.NewReader(out)
		p.listening <- p.announced(lines)
		io.Copy(io.Discard, lines)
		cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// listens waits until it does; one that does not is ended.
func (p *process) listens() error {
	if err := <-p.listening; err != nil {
		p.kill()
		return fmt.Errorf("%s: %w\n%s", strings.Join(p.cmd.Args, " "), err, p.log)
	}
	return nil
}

// announced reads where it listens.
func (p *process) announced(lines *bufio.Reader) (err error) {
	if p.URL, err = announced(lines, `^weir listens on (\S+)`); err == nil {
		p.GRPC, err = announced(lines, `^weir listens for gRPC on (\S+)`)
	}
	if err == nil && slices.Contains(p.cmd.Args, "--resp") {
		p.RESP, err = announced(lines, `^weir listens for Redis clients on (\S+)`)
	}
	if err == nil && slices.Contains(p.cmd.Args, "gateway") {
		p.Gateway, err = announced(lines, `^weir gateway listens on (\S+)`)
	}
	return err
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
	return p.ends(t)
}

// ends waits until it has ended, and returns its exit code.
func (p *process) ends(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(2 * time.Minute):
		p.kill()
		t.Fatal("weir did not stop")
	}
	return p.cmd.ProcessState.ExitCode()
}

// waitFor waits until something holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s never came", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
