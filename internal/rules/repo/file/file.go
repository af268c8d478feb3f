package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/rule"
)

// document is what is in the file.
type document struct {
	source []byte
	digest string
	time   time.Time // of the last change
	mode   fs.FileMode
}

// readDocument reads the file, wherever symbolic links lead.
func readDocument(path string) (*document, error) {
	file, err := disk.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("rules: the file %s no longer exists; the previous version stays in force until it exists again: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	// One byte more than is allowed is enough to be rejected.
	source, err := io.ReadAll(io.LimitReader(file, rule.MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return &document{source, repo.DigestOf(source), info.ModTime().UTC(), info.Mode().Perm()}, nil
}

// named says what an error is about.
func named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("rules: %w", err)
}

// stageFile writes down what is to be put in the place of a file, with its permission
// bits and, as far as that is allowed, its owner.
func stageFile(path string, text []byte, mode fs.FileMode) (staged string, err error) {
	// Only one can write at a time, so one name is enough, and a crash leaves no
	// more than one file behind.
	staged = filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := disk.WriteFile(staged, mode, text); err != nil {
		return "", named(err)
	}
	keepOwner(path, staged)
	return staged, nil
}

// replaceFile replaces a file atomically: a reader sees the old or the new one.
func replaceFile(path, staged string) error {
	if err := os.Rename(staged, path); err != nil {
		_ = os.Remove(staged)
		return named(err)
	}
	return named(disk.SyncFolder(filepath.Dir(path)))
}

// lock waits until no other call writes, in this process or in another. The lock of a
// dead process is free.
func (r *Repository) lock(ctx context.Context) (unlock func(), err error) {
	done, err := r.turn.Take(ctx)
	if err != nil {
		return nil, err
	}
	folder, ok := r.archive.(*folder)
	if !ok {
		return done, nil
	}
	var file *os.File
	if err = makeFolder(folder.path, 0o600); err == nil { // it may have been removed to forget the past
		file, err = disk.Lock(ctx, filepath.Join(folder.path, "lock"))
	}
	if err != nil {
		done()
		return nil, named(err)
	}
	return func() {
		_ = file.Close() // which gives back the lock
		done()
	}, nil
}

// tryFolder makes the folder, and finds out whether it can be locked.
func tryFolder(path string, mode fs.FileMode) error {
	if err := makeFolder(path, mode); err != nil {
		return err
	}
	file, err := disk.TryLock(filepath.Join(path, "lock"))
	switch {
	case errors.Is(err, disk.ErrLocked):
		return nil // so it can
	case err != nil:
		return err
	}
	return file.Close()
}
