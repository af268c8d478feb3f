package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"time"
)

// Child is one run of a program.
type Child struct {
	cmd   *exec.Cmd
	done  chan struct{} // closed when it has ended
	log   string        // what it writes
	begun int64         // where in the log
}

// Start starts a program whose output is appended to a file: through a pipe, a child of
// the program could keep us waiting for the pipe's end after the program's own. The program
// is killed when this process ends, however it ends, where the system can do that. It has
// the environment of this process, unless another is given.
func Start(path string, args []string, log string, env ...string) (*Child, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	before, err := out.Stat()
	if err != nil {
		return nil, err
	}
	p := &Child{cmd: exec.Command(path, args...), done: make(chan struct{}), log: log, begun: before.Size()}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr, p.cmd.Env = attr(), env
	started := make(chan error)
	go func() {
		defer close(p.done)
		defer out.Close()
		// Linux takes the death of the thread for that of the parent. So this
		// thread does nothing else as long as the program runs.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.cmd.Wait()
		}
	}()
	return p, <-started
}

// startup is how long a program may take to say what it is awaited to.
const startup = 30 * time.Second

// Await returns what a pattern finds in what the program writes, as soon as it does. A program
// that ends or takes too long before that is killed, and what it wrote is in the error.
func (p *Child) Await(pattern *regexp.Regexp) ([]string, error) {
	for deadline := time.Now().Add(startup); ; time.Sleep(5 * time.Millisecond) {
		ended := !p.Alive()
		all, err := os.ReadFile(p.log)
		if err != nil {
			return nil, err
		}
		text := string(all[p.begun:])
		if found := pattern.FindStringSubmatch(text); found != nil {
			return found, nil
		}
		if ended || time.Now().After(deadline) {
			p.Kill()
			return nil, fmt.Errorf("%s does not start:\n%s", p.cmd.Path, text)
		}
	}
}

// PID is the number of the process.
func (p *Child) PID() int { return p.cmd.Process.Pid }

// Alive reports whether the program still runs, or stands still.
func (p *Child) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Signal sends a signal.
func (p *Child) Signal(signal os.Signal) error { return p.cmd.Process.Signal(signal) }

// Done is closed when the program has ended.
func (p *Child) Done() <-chan struct{} { return p.done }

// Kill ends the program and waits for its end. It works on a stopped program too, and on
// one that has ended.
func (p *Child) Kill() {
	p.cmd.Process.Kill()
	<-p.done
}
