package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/metrics"
)

// dataDir is a directory that belongs to this process until Close. It is safe for concurrent
// use, but for two who save the same file.
type dataDir struct {
	path string
	now  func() time.Time

	mu    sync.Mutex
	lock  *os.File // nil after Close
	files map[string]*dataFile
}

// dataFile is how a file of the directory fares.
type dataFile struct {
	metrics.File
	inPlace bool  // although it cannot be used
	err     error // of the last save
}

// openDataDir makes the directory if it is not there, and takes it. If another process has it,
// it calls waiting, with the owner, and waits so long. It removes what a process has left of
// these files that was killed while it saved.
func openDataDir(ctx context.Context, path string, wait time.Duration, waiting func(owner string), files ...string) (*dataDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	_ = disk.SyncFolder(filepath.Dir(path)) // as well as can be: it may be closed to us
	d := &dataDir{path: path, now: time.Now, files: map[string]*dataFile{}}
	if d.lock, err = d.wait(ctx, wait, waiting); err != nil {
		return nil, err
	}
	entries, _ := os.ReadDir(d.path)
	for _, e := range entries {
		if of, is := disk.IsLeftover(e.Name()); is && slices.Contains(files, of) {
			_ = os.Remove(d.file(e.Name())) // or next time
		}
	}
	return d, nil
}

// Close gives the directory back.
func (d *dataDir) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.lock.Close()
	d.lock = nil
}

func (d *dataDir) file(name string) string { return filepath.Join(d.path, name) }

// known is what is known of a file. It needs the mutex.
func (d *dataDir) known(name string) *dataFile {
	if d.files[name] == nil {
		d.files[name] = &dataFile{File: metrics.File{Name: name}}
	}
	return d.files[name]
}

// Restore reads a file, and reports whether there is one. With an error it cannot be used;
// nothing is saved in its place before SetAside.
func (d *dataDir) Restore(name string, read func(io.Reader) error) (found bool, err error) {
	err = d.readFile(name, read)
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.known(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	f.inPlace = err != nil
	return true, err
}

func (d *dataDir) readFile(name string, read func(io.Reader) error) error {
	f, err := disk.Open(d.file(name))
	if err != nil {
		return err
	}
	defer f.Close()
	return read(f)
}

// SetAside gives every file that could not be used another name, which no file has had,
// and returns those names by the old ones.
func (d *dataDir) SetAside() (map[string]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	moved := map[string]string{}
	for name, f := range d.files {
		if !f.inPlace {
			continue
		}
		to, err := d.free(name + ".unusable-" + d.now().UTC().Format("20060102T150405Z"))
		if err == nil {
			err = os.Rename(d.file(name), d.file(to))
		}
		if err != nil {
			return moved, fmt.Errorf("%s cannot be used and cannot be moved aside: %w", name, err)
		}
		f.inPlace, f.Unusable = false, true
		moved[name] = d.file(to)
	}
	if len(moved) == 0 {
		return nil, nil
	}
	return moved, disk.SyncFolder(d.path)
}

// free is a name that nothing has, beginning with what is given.
func (d *dataDir) free(name string) (string, error) {
	for n := 1; ; n++ {
		candidate := name
		if n > 1 {
			candidate = fmt.Sprintf("%s-%d", name, n)
		}
		if _, err := os.Lstat(d.file(candidate)); errors.Is(err, fs.ErrNotExist) {
			return candidate, nil
		} else if err != nil {
			return "", err
		}
	}
}

// Save replaces a file by what write writes.
func (d *dataDir) Save(name string, write func(io.Writer) error) error {
	err := d.mayWrite(name)
	if err == nil {
		err = disk.Replace(d.file(name), 0o600, write)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.known(name)
	f.err = err
	if err != nil {
		f.Failures++
	} else {
		f.Saved = d.now()
	}
	return err
}

// mayWrite reports why a file must not be written.
func (d *dataDir) mayWrite(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known(name).inPlace {
		return errors.New("the existing file could not be used, and was not moved aside")
	}
	return d.own()
}

// Files are how all files fare that were restored or saved, by name.
func (d *dataDir) Files() []dataFile {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]dataFile, 0, len(d.files))
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		all = append(all, *d.files[name])
	}
	return all
}

// trouble is why the last save failed, in a sentence without paths; nil if it did not.
func (f *dataFile) trouble() error {
	switch {
	case f.err == nil:
		return nil
	case f.Saved.IsZero():
		return fmt.Errorf("%s could not be saved: %w; it was not saved since the start", f.Name, reason(f.err))
	}
	return fmt.Errorf("%s could not be saved: %w; it was last saved at %s", f.Name, reason(f.err), moment(f.Saved))
}

// reason is an error without the file that it is about.
func reason(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	var call *os.SyscallError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	case errors.As(err, &call):
		return call.Err
	}
	return err
}

// lockName is the file that the owner has locked. It names the owner, and is never
// removed: the next owner may already have locked it.
const lockName = "lock"

// lockEvery is how often a lock is tried that another process has.
const lockEvery = 20 * time.Millisecond

// wait takes the lock, and waits for it as long as it may.
func (d *dataDir) wait(ctx context.Context, most time.Duration, waiting func(owner string)) (*os.File, error) {
	lock, err := d.takeLock()
	if errors.Is(err, disk.ErrLocked) && most > 0 {
		waiting(d.owner())
		ctx, cancel := context.WithTimeout(ctx, most)
		defer cancel()
		for errors.Is(err, disk.ErrLocked) && clock.Sleep(ctx, lockEvery) == nil {
			lock, err = d.takeLock()
		}
	}
	return lock, d.explained(err)
}

// takeLock takes the lock if it is free, and says in it whose it is.
func (d *dataDir) takeLock() (*os.File, error) {
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
func (d *dataDir) own() error {
	if d.lock == nil {
		return os.ErrClosed
	}
	if disk.Holds(d.lock, d.file(lockName)) {
		return nil
	}
	lock, err := d.takeLock()
	if err != nil {
		return d.explained(err)
	}
	_ = d.lock.Close()
	d.lock = lock
	return nil
}

// explained says who has the lock, and what to do.
func (d *dataDir) explained(err error) error {
	if !errors.Is(err, disk.ErrLocked) {
		return err
	}
	return fmt.Errorf("%s is in use by %s; stop it, or use another directory", d.path, d.owner())
}

// owner returns who has the lock, as far as it is known.
func (d *dataDir) owner() string {
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
