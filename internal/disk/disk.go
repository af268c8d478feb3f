// Package disk has what a file needs to survive a crash, and two processes at once: locks,
// files that are replaced as a whole, and reads with a bound.
package disk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"github.com/weirhq/weir/internal/clock"
)

// ErrLocked is what TryLock says while somebody else has the lock.
var ErrLocked = errors.New("another process has the lock")

// lockEvery is how often Lock tries. The system would wait, too, but not for a context.
const lockEvery = 5 * time.Millisecond

// Lock is like TryLock, but waits until the lock is free or the context ends.
func Lock(ctx context.Context, path string) (*os.File, error) {
	for {
		file, err := TryLock(path)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, ErrLocked) {
			return nil, fmt.Errorf("the lock is not available: %w", err)
		}
		if err := clock.Sleep(ctx, lockEvery); err != nil {
			return nil, fmt.Errorf("%w while another process was writing", err)
		}
	}
}

// Replace writes a file with these permissions beside the old one, and puts it in its
// place when all of it is on the disk. A crash leaves the old one or the new one, and perhaps a file that IsLeftover
// knows.
func Replace(path string, mode os.FileMode, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	if err = fill(f, mode, write); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// WriteFile writes a file with these permissions to the disk, whatever was there. A crash may leave
// a part of it.
func WriteFile(path string, mode os.FileMode, text []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return fill(f, mode, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// fill writes a new file to the disk, and closes it.
func fill(f *os.File, mode os.FileMode, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(f, 1<<16)
	for _, step := range []func() error{
		func() error { return f.Chmod(mode) },
		func() error { return write(w) },
		w.Flush,
		f.Sync,
	} {
		if err := step(); err != nil {
			_ = f.Close()
			return err
		}
	}
	return f.Close()
}

// SyncFolder makes new names in a folder outlive a loss of power, where a folder can be synced.
func SyncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil // it need not be
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	err = folder.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // a file system that cannot is as safe as it can be
	}
	return err
}

var errIrregular = errors.New("it is not a regular file")

// Open opens a regular file to read it. A named pipe could block for ever, when it is opened and
// when it is read, and a device may have no end.
func Open(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	switch {
	case err == nil && info.IsDir():
		err = &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	case err == nil && !info.Mode().IsRegular():
		err = &fs.PathError{Op: "read", Path: path, Err: errIrregular}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// inherited are the paths of what this process was given when it was started, as by the <(command) of
// a shell.
var inherited = regexp.MustCompile(`^/dev/(stdin|fd/[0-9]+)$`)

// ReadFile reads a regular file, or a pipe that this process inherited, with a maximum size. A
// larger file is not what the caller meant, so it is an error.
func ReadFile(path string, most int, what string) ([]byte, error) {
	open := Open
	if inherited.MatchString(path) {
		open = os.Open
	}
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadAll(file, path, most, what)
}

// ReadAll is ReadFile for what is open already, and has a name for people.
func ReadAll(r io.Reader, name string, most int, what string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(text) > most {
		size := fmt.Sprintf("%d KiB", most>>10)
		if most >= 1<<20 {
			size = fmt.Sprintf("%d MiB", most>>20)
		}
		return nil, fmt.Errorf("%s is larger than %s, the maximum for a %s", name, size, what)
	}
	return text, err
}

var leftover = regexp.MustCompile(`^(.+)\.[0-9]+\.tmp$`)

// IsLeftover reports whether a name in a folder is that of a file with which Replace was
// not done when the process ended, and the name of what it would have become.
func IsLeftover(name string) (of string, is bool) {
	match := leftover.FindStringSubmatch(name)
	if match == nil {
		return "", false
	}
	return match[1], true
}
