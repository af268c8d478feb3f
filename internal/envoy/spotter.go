package envoy

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// spotter is told by the system when something happens to a directory. Without the
// system's help it only waits.
type spotter struct {
	path    string
	watcher *fsnotify.Watcher
}

func newSpotter(path string, pollOnly bool) *spotter {
	s := &spotter{path: path}
	if pollOnly {
		return s
	}
	// An error means that there are too many watchers already, or that this system
	// has none; then there is still the poll.
	s.watcher, _ = fsnotify.NewWatcher()
	return s
}

func (s *spotter) close() {
	if s.watcher != nil {
		_ = s.watcher.Close()
	}
}

// aim watches the directories that matter now.
func (s *spotter) aim() {
	if s.watcher == nil {
		return
	}
	folders := watched(s.path)
	for _, folder := range s.watcher.WatchList() {
		if !folders[folder] {
			_ = s.watcher.Remove(folder)
		}
	}
	for folder := range folders {
		_ = s.watcher.Add(folder) // again, if it was replaced meanwhile; the poll sees the rest
	}
}

// wait waits for a reason to look.
func (s *spotter) wait(ctx context.Context, poll <-chan time.Time) {
	if s.watcher == nil {
		select {
		case <-ctx.Done():
		case <-poll:
		}
		return
	}
	select {
	case <-ctx.Done():
	case <-poll:
	case <-s.watcher.Errors: // some events were lost
	case <-s.watcher.Events:
		s.drain()
	}
}

// drain forgets what one look is enough for.
func (s *spotter) drain() {
	for {
		select {
		case <-s.watcher.Events:
		default:
			return
		}
	}
}

// maxLinks is how many symbolic links are followed, as by Linux.
const maxLinks = 40

// watched returns the directories in which a change decides what is found at a path: the
// directory itself, wherever it is, and that of every symbolic link on the way. Others
// turn one of these, "current", to replace everything below at once. A link inside the
// directory, such as the "..data" of Kubernetes, is a change in it.
func watched(path string) map[string]bool {
	found := map[string]bool{}
	folder := filepath.VolumeName(path) + string(filepath.Separator)
	rest := names(strings.TrimPrefix(path, folder))
	for links := 0; len(rest) > 0 && links < maxLinks; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			folder = filepath.Dir(folder)
			continue
		}
		target, err := os.Readlink(filepath.Join(folder, name))
		if err != nil {
			folder = filepath.Join(folder, name)
			continue
		}
		found[folder] = true
		links++
		if filepath.IsAbs(target) {
			folder = filepath.VolumeName(target) + string(filepath.Separator)
			target = strings.TrimPrefix(target, folder)
		}
		rest = append(names(target), rest...)
	}
	found[folder] = true
	return found
}

// names are the parts of a path.
func names(path string) []string {
	return strings.FieldsFunc(filepath.Clean(path), func(c rune) bool { return c == filepath.Separator })
}
