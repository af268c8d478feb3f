package file

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/weirhq/weir/internal/repo"
)

// Watch implements repo.Repository.
func (r *Repository) Watch(ctx context.Context, changed func(repo.Version, error)) error {
	n := repo.Notifier{Changed: changed}
	s := newSpotter(r.path, r.options.PollOnly)
	defer s.close()
	poll := time.NewTicker(r.options.Poll)
	defer poll.Stop()
	for ctx.Err() == nil {
		// First, so that nothing can happen unseen after the look.
		s.aim()
		f := r.look(ctx)
		if ctx.Err() != nil {
			break
		}
		n.Tell(f.version, f.trouble)
		s.wait(ctx, poll.C)
	}
	return ctx.Err()
}

// spotter is told by the system when something happens to the document. Without the
// system's help it only waits.
type spotter struct {
	path    string
	watcher *fsnotify.Watcher
	entries map[string][]string
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

// aim watches the directories that matter now. A file cannot be watched by itself: an
// editor that writes a new one and renames it would leave us with the old one.
func (s *spotter) aim() {
	if s.watcher == nil {
		return
	}
	s.entries = entries(s.path)
	for _, folder := range s.watcher.WatchList() {
		if s.entries[folder] == nil {
			_ = s.watcher.Remove(folder)
		}
	}
	for folder := range s.entries {
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
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll:
			return
		case <-s.watcher.Errors:
			return // some events were lost
		case event := <-s.watcher.Events:
			if s.concerns(event) {
				s.drain()
				return
			}
		}
	}
}

// concerns is whether an event is about the document and not about its neighbours.
func (s *spotter) concerns(event fsnotify.Event) bool {
	return slices.Contains(s.entries[filepath.Dir(event.Name)], filepath.Base(event.Name)) || s.entries[event.Name] != nil
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
