package datadir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/weirhq/weir/internal/disk"
)

// lockName is the file that the owner has locked. It names the owner, and is never
// removed: the next owner may already have locked it.
const lockName = "lock"

// lockEvery is how often a lock is tried that another process has.
const lockEvery = 20 * time.Millisecond

// wait takes the lock, and waits for it as long as it may.
func (d *Dir) wait(ctx context.Context, o Options) (*os.File, error) {
	lock, err := d.take()
	if !errors.Is(err, disk.ErrLocked) || o.Wait <= 0 {
		return lock, d.explained(err)
	}
	if o.Waiting != nil {
		o.Waiting(d.owner())
	}
	ctx, cancel := context.WithTimeout(ctx, o.Wait)
	defer cancel()
	every := time.NewTicker(lockEvery)
	defer every.Stop()
	for errors.Is(err, disk.ErrLocked) && ctx.Err() == nil {
		select {
		case <-every.C:
			lock, err = d.take()
		case <-ctx.Done():
		}
	}
	return lock, d.explained(err)
}

// take takes the lock if it is free, and says in it whose it is.
func (d *Dir) take() (*os.File, error) {
	lock, err := disk.TryLock(d.file(lockName))
	if err != nil {
		return nil, err
	}
	if !disk.Holds(lock, d.file(lockName)) {
		_ = lock.Close() // it was removed just then
		return nil, disk.ErrLocked
	}
	host, _ := os.Hostname()
	if lock.Truncate(0) == nil { // it is for people only, and a full disk need not have it
		_, _ = lock.WriteAt(fmt.Appendf(nil, "%d %s\n", os.Getpid(), host), 0)
	}
	return lock, nil
}

// own checks that the lock file is still the one in the directory. If the directory was
// emptied, another process may have taken a new lock. The caller holds the mutex.
func (d *Dir) own() error {
	if d.lock == nil {
		return os.ErrClosed
	}
	if disk.Holds(d.lock, d.file(lockName)) {
		return nil
	}
	lock, err := d.take()
	if err != nil {
		return d.explained(err)
	}
	_ = d.lock.Close()
	d.lock = lock
	return nil
}

// explained says who has the lock, and what to do.
func (d *Dir) explained(err error) error {
	if !errors.Is(err, disk.ErrLocked) {
		return err
	}
	return fmt.Errorf("%s is in use by %s; stop it, or use another directory", d.path, d.owner())
}

// owner returns who has the lock, as far as it is known.
func (d *Dir) owner() string {
	lock, err := disk.Open(d.file(lockName))
	if err != nil {
		return "another process" // where a lock cannot be read, either
	}
	defer lock.Close()
	text, _ := io.ReadAll(io.LimitReader(lock, 300))
	var pid int
	var host string
	switch n, _ := fmt.Sscan(string(text), &pid, &host); n {
	case 2:
		return fmt.Sprintf("process %d on %s", pid, host)
	case 1:
		return fmt.Sprintf("process %d", pid)
	}
	return "another process"
}
