package envoy

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pacer waits for instants. Go's own timers are a millisecond late in a process that has
// nothing else to do, which is longer than most answers take.
type pacer struct{ timer *os.File }

func newPacer() (*pacer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &pacer{os.NewFile(uintptr(fd), "timer")}, nil
}

func (p *pacer) close() { _ = p.timer.Close() }

// until waits, unless it is later already.
func (p *pacer) until(due time.Time) error {
	for wait := time.Until(due); wait > 0; wait = time.Until(due) {
		once := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(wait))}
		raw, err := p.timer.SyscallConn()
		if err != nil {
			return err
		}
		failed := raw.Control(func(fd uintptr) { err = unix.TimerfdSettime(int(fd), 0, &once, nil) })
		if failed != nil || err != nil {
			return os.NewSyscallError("timerfd_settime", err)
		}
		var expirations [8]byte
		if _, err := p.timer.Read(expirations[:]); err != nil {
			return err
		}
	}
	return nil
}
