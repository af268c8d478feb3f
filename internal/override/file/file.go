// Package file keeps the document of overrides in a file, for the processes of one machine.
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
	"github.com/weirhq/weir/internal/override"
	"github.com/weirhq/weir/internal/watch"
)

// Names in the directory.
const (
	name     = "overrides.json"
	lockName = "overrides.lock" // held by the process that writes
)

// pollEvery is how often Watch calls look, in addition to notifications of the system, so
// that it detects every change within about a second.
const pollEvery = time.Second

// Place is a document in a directory. It is safe for concurrent use, also by several
// processes.
type Place struct {
	dir, path string
}

var _ override.Place = (*Place)(nil)

// In returns a place in a directory. If the directory does not exist, the first Write
// creates it.
func In(dir string) (*Place, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("override: %w", err)
	}
	return &Place{dir, filepath.Join(dir, name)}, nil
}

// Read implements override.Place.
func (p *Place) Read(ctx context.Context, known override.Revision) ([]byte, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	source, err := p.read()
	if err != nil || override.RevisionOf(source) == known {
		return nil, false, err
	}
	return source, true, nil
}

func (p *Place) read() ([]byte, error) {
	source, err := disk.ReadFile(p.path, override.MaxDocument, "document of overrides")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("override: %w", err)
	}
	return source, nil
}

// Write implements override.Place. A crash leaves the old document or the new one.
func (p *Place) Write(ctx context.Context, base override.Revision, source []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return fmt.Errorf("override: %w", err)
	}
	lock, err := disk.Lock(ctx, filepath.Join(p.dir, lockName))
	if err != nil {
		return fmt.Errorf("override: %w", err)
	}
	defer lock.Close() // releases the lock
	now, err := p.read()
	switch {
	case err != nil:
		return err
	case override.RevisionOf(now) != base:
		return override.ErrChanged
	}
	p.sweep()
	err = disk.Replace(p.path, 0o600, func(w io.Writer) error {
		_, err := w.Write(source)
		return err
	})
	if err != nil {
		return fmt.Errorf("override: %w", err)
	}
	return nil
}

// sweep removes temporary files of crashed processes. The caller must have the lock.
func (p *Place) sweep() {
	files, _ := filepath.Glob(p.path + ".*.tmp")
	for _, file := range files {
		if of, is := disk.IsLeftover(filepath.Base(file)); is && of == name {
			_ = os.Remove(file)
		}
	}
}

// Watch implements override.Place.
func (p *Place) Watch(ctx context.Context, look func()) error {
	return watch.Follow(ctx, p.path, watch.Options{Poll: pollEvery}, look)
}
