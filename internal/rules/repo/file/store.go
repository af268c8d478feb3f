package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/watch"
)

// Store is a document in a directory, for the processes of one machine: name.json, and name.lock,
// which is held by the process that writes. It is safe for concurrent use, also by several processes.
type Store struct {
	repo.StoreOptions
	path, lock string
}

var _ repo.Store = (*Store)(nil)

// OpenStore returns a store in a directory. If the directory does not exist, the first Write
// creates it.
func OpenStore(dir string, o repo.StoreOptions) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	path := filepath.Join(dir, o.Name)
	return &Store{o, path + ".json", path + ".lock"}, nil
}

// Read implements repo.Store.
func (s *Store) Read(ctx context.Context, known repo.Revision) ([]byte, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	source, err := s.readSource()
	if err != nil || repo.RevisionOf(source) == known {
		return nil, false, err
	}
	return source, true, nil
}

func (s *Store) readSource() ([]byte, error) {
	source, err := disk.ReadFile(s.path, s.Most, "document of "+s.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return source, nil
}

// Write implements repo.Store. A crash leaves the old document or the new one.
func (s *Store) Write(ctx context.Context, base repo.Revision, source []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	lock, err := disk.Lock(ctx, s.lock)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	defer lock.Close() // releases the lock
	now, err := s.readSource()
	switch {
	case err != nil:
		return err
	case repo.RevisionOf(now) != base:
		return repo.ErrChanged
	}
	s.sweep()
	err = disk.Replace(s.path, 0o600, func(w io.Writer) error {
		_, err := w.Write(source)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	return nil
}

// sweep removes temporary files of crashed processes. The caller must have the lock.
func (s *Store) sweep() {
	files, _ := filepath.Glob(s.path + ".*.tmp")
	for _, file := range files {
		if of, is := disk.IsLeftover(filepath.Base(file)); is && of == filepath.Base(s.path) {
			_ = os.Remove(file)
		}
	}
}

// Watch implements repo.Store. It detects every change within about a second.
func (s *Store) Watch(ctx context.Context, look func()) error {
	return watch.Follow(ctx, s.path, watch.Options{}, look)
}
