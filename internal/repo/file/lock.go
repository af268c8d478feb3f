package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weirhq/weir/internal/disk"
)

// lock waits until no other call writes, in this process or in another. The lock of a
// dead process is free.
func (r *Repository) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	folder, ok := r.archive.(*folder)
	if !ok {
		return func() { <-r.turn }, nil
	}
	file, err := lockFolder(ctx, folder.path)
	if err != nil {
		<-r.turn
		return nil, err
	}
	return func() {
		_ = file.Close() // which gives back the lock
		<-r.turn
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

func lockFolder(ctx context.Context, path string) (*os.File, error) {
	// It may have been removed to forget the past.
	if err := makeFolder(path, 0o600); err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	file, err := disk.Lock(ctx, filepath.Join(path, "lock"))
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return file, nil
}
