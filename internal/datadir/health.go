package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"
)

// File is how a file of a directory fares.
type File struct {
	Name     string
	Failures int64     // saves that failed
	Saved    time.Time // when it was saved; zero if it was not since Open
	Moved    int       // how often it could not be used and was moved aside

	// Trouble is why the last save failed, in a sentence without paths. nil if it did
	// not.
	Trouble error
}

// Files are how all files fare that were restored or saved, by name.
func (d *Dir) Files() []File {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]File, 0, len(d.files))
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[name]
		all = append(all, File{Name: name, Failures: f.failures, Saved: f.saved, Moved: f.moved, Trouble: f.trouble(name)})
	}
	return all
}

func (f *file) trouble(name string) error {
	switch {
	case f.err == nil:
		return nil
	case f.saved.IsZero():
		return fmt.Errorf("%s could not be saved: %w; it was not saved since the start", name, reason(f.err))
	}
	return fmt.Errorf("%s could not be saved: %w; it was last saved at %s", name, reason(f.err), f.saved.UTC().Format(time.RFC3339))
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
