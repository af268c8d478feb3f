// Package watch looks at a file or a directory whenever it may have changed: when the
// system says so, and from time to time.
package watch

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/weirhq/weir/internal/clock"
)

// Options of a watch.
type Options struct {
	// Poll is how often it looks, besides being told by the system. Default 1 s.
	Poll time.Duration

	// PollOnly is for file systems that tell nothing, such as NFS. Where the system cannot
	// tell, it polls anyway.
	PollOnly bool
}

// Follow calls look, and again whenever something may have happened to what is found at a
// path, until the context ends, which is its error. Files that are replaced through
// symbolic links are seen, too, as Kubernetes and goruntime do it.
func Follow(ctx context.Context, path string, o Options, look func()) error {
	s := &spotter{path: path}
	if !o.PollOnly {
		// An error means that there are too many watchers already, or that this system
		// has none; then there is still the poll.
		s.watcher, _ = fsnotify.NewWatcher()
	}
	if s.watcher != nil {
		defer s.watcher.Close()
	}
	for ctx.Err() == nil {
		// First, so that nothing can happen unseen after the look.
		s.aim()
		look()
		s.wait(ctx, clock.UntilWhole(time.Now(), cmp.Or(o.Poll, time.Second)))
	}
	return ctx.Err()
}

// Rest is how long files must stay as they are: an editor may be in the middle of writing
// one, and half a document can be a good one with half the limits.
const Rest = 50 * time.Millisecond

// MaxRests is how often that is tried, before it is left to the next look.
const MaxRests = 40

// Pause waits as long as files must rest.
func Pause(ctx context.Context) error { return clock.Sleep(ctx, Rest) }

// spotter is told by the system when something happens. Without the system's help it only
// waits.
type spotter struct {
	path    string
	watcher *fsnotify.Watcher
	entries map[string][]string
}

// aim watches the directories that matter now. A file cannot be watched by itself: an
// editor that writes a new one and renames it would leave us with the old one.
func (s *spotter) aim() {
	if s.watcher == nil {
		return
	}
	s.entries = entries(s.path)
	for _, folder := range s.watcher.WatchList() {
		if _, wanted := s.entries[folder]; !wanted {
			_ = s.watcher.Remove(folder)
		}
	}
	for folder := range s.entries {
		_ = s.watcher.Add(folder) // again, if it was replaced meanwhile; the poll sees the rest
	}
}

// wait waits for a reason to look, or for so long.
func (s *spotter) wait(ctx context.Context, most time.Duration) {
	if s.watcher == nil {
		_ = clock.Sleep(ctx, most)
		return
	}
	poll := time.After(most)
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

// concerns is whether an event is about what is watched and not about its neighbours.
func (s *spotter) concerns(event fsnotify.Event) bool {
	if _, folder := s.entries[event.Name]; folder {
		return true
	}
	names, watched := s.entries[filepath.Dir(event.Name)]
	return watched && (names == nil || slices.Contains(names, filepath.Base(event.Name)))
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

// entries returns, by directory, the names that decide what is found at a path: that
// itself, and every symbolic link on the way to it. Kubernetes replaces a ConfigMap by
// turning one of these, "..data", while the file's own link stays. In what is a directory
// itself everything decides, which is nil: a link inside it, such as "..data", too.
func entries(path string) map[string][]string {
	found := map[string][]string{}
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
		isLink := err == nil
		if isLink || len(rest) == 0 {
			found[folder] = append(found[folder], name)
		}
		switch {
		case !isLink:
			folder = filepath.Join(folder, name)
			continue
		case filepath.IsAbs(target):
			folder = filepath.VolumeName(target) + string(filepath.Separator)
			target = strings.TrimPrefix(target, folder)
		}
		links++
		rest = append(names(target), rest...)
	}
	if info, err := os.Stat(folder); err == nil && info.IsDir() && len(rest) == 0 {
		found[folder] = nil
	}
	return found
}

// names are the parts of a path.
func names(path string) []string {
	return strings.FieldsFunc(filepath.Clean(path), func(c rune) bool { return c == filepath.Separator })
}
