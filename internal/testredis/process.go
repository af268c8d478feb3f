package testredis

import (
	"os"
	"os/exec"
	"runtime"
)

// process is one run of a program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// spawn starts a program whose output goes to a file: through a pipe, a child of
// the program could keep us waiting for the pipe's end after the program's own.
func spawn(path string, args []string, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = attr()
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

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill works on a stopped process too, and on one that has ended.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.done
}
