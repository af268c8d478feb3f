package testkit

import (
	"os"
	"os/exec"
	"runtime"
)

// Child is one run of a program.
type Child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
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
	p := &Child{cmd: exec.Command(path, args...), done: make(chan struct{})}
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
