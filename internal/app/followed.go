package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/watch"
)

// followed is a file beside the rules that is read again when it changes. One that cannot be used keeps weir from
// starting; later, what was read before stays in force.
type followed struct {
	app      *App
	flag     string                                       // --clients
	what     string                                       // the clients
	path     string                                       // "" is none
	read     func(file *os.File) (entries int, err error) // brings what the file says into force
	reloaded func(ok bool)
	help     string // what has its errors: "the log has"

	mu    sync.Mutex  // of one look
	state os.FileInfo // of the file that was read last; nil if it could not be read
	good  atomic.Bool // it could be used
	stale atomic.Pointer[staleRules]
}

// open brings the file into force.
func (f *followed) open(background context.Context) error {
	if f.path == "" {
		return nil
	}
	if err := f.look(); err != nil {
		return err
	}
	f.app.follow(background, func(ctx context.Context) error {
		return watch.Follow(ctx, f.path, watch.Options{}, func() { f.follow(ctx) })
	}, "could not watch "+f.what+"; trying again", "file", f.path)
	return nil
}

// look reads the file if it has changed.
func (f *followed) look() error {
	if f.path == "" {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	file, err := os.Open(f.path)
	if err != nil {
		f.state = nil
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || f.isSame(info) {
		return err
	}
	f.state = info
	f.good.Store(false)
	entries, err := f.read(file)
	if err != nil {
		return err
	}
	if now, err := file.Stat(); err != nil || !f.isSame(now) {
		f.state = nil
		return errors.New("the file changed while it was read; replace it in one step, by renaming a new one")
	}
	f.good.Store(true)
	f.app.options.Logger.Info("loaded "+f.what, "file", f.path, "entries", entries)
	return nil
}

func (f *followed) isSame(info os.FileInfo) bool {
	return f.state != nil && os.SameFile(f.state, info) && f.state.Size() == info.Size() && f.state.ModTime().Equal(info.ModTime())
}

// follow looks, and tells of what cannot be used.
func (f *followed) follow(ctx context.Context) {
	if watch.Pause(ctx) != nil { // somebody may be writing it
		return
	}
	f.judge(f.look())
}

// reload reads the file whether or not it has changed.
func (f *followed) reload() error {
	f.mu.Lock()
	f.state = nil
	f.mu.Unlock()
	err := f.look()
	f.judge(err)
	return err
}

// judge remembers what a look has found. One that found nothing new leaves it as it was.
func (f *followed) judge(err error) {
	switch was := f.stale.Load(); {
	case err == nil && was != nil && f.good.Load():
		f.stale.Store(nil)
		f.reloaded(true)
		f.app.options.Logger.Info(f.what+" can be loaded again", "file", f.path, "failed_since", moment(was.since))
	case err == nil || was != nil && was.err.Error() == err.Error():
	default:
		f.stale.Store(&staleRules{time.Now(), err})
		f.reloaded(false)
		f.app.options.Logger.Error("could not load "+f.what+"; the previous ones stay in force", "file", f.path, "error", err)
	}
}

// trouble is what anybody may know of it.
func (f *followed) trouble() error {
	if s := f.stale.Load(); s != nil {
		return fmt.Errorf("%s: the file has failed to load since %s, so the previous one stays in force; %s the cause", f.flag, moment(s.since), f.help)
	}
	return nil
}
