package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/internal/watch"
	"github.com/weirhq/weir/rule"
)

// Clients are a directory of clients.
type Clients struct {
	// File has the clients, as rule.ReadDirectory reads them. Default none: there is no directory.
	File string

	// DenyUnknown and TrustRequest are as in engine.Clients.
	DenyUnknown  bool
	TrustRequest bool
}

func (c *Clients) check() error {
	if c.File == "" && (c.DenyUnknown || c.TrustRequest) {
		return errors.New("--clients-unknown and --clients-trust-request require --clients; set the file with the clients")
	}
	return nil
}

// clientsError reports a file that cannot be used.
type clientsError struct{ problems rule.Problems }

func (e *clientsError) Error() string {
	return fmt.Sprintf("%s (%s)", strings.TrimSpace(e.problems[0].String()), notation.Count(len(e.problems), "error"))
}

// clients follow a file.
type clients struct {
	app   *App
	mu    sync.Mutex  // of one look
	state os.FileInfo // of the file that was read last; nil if it could not be read
	good  atomic.Bool // it could be used
	stale atomic.Pointer[staleRules]
}

// openClients brings the file of clients into force. One that cannot be used keeps weir from starting.
func (a *App) openClients(_, background context.Context) error {
	a.clients = &clients{app: a}
	if a.options.Clients.File == "" {
		return nil
	}
	err := a.clients.look()
	if wrong, ok := errors.AsType[*clientsError](err); ok {
		return fmt.Errorf("the clients in %s have errors:\n%s", a.options.Clients.File, wrong.problems)
	}
	if err != nil {
		return fmt.Errorf("--clients: %w", err)
	}
	a.follow(background, func(ctx context.Context) error {
		return watch.Follow(ctx, a.options.Clients.File, watch.Options{}, func() { a.clients.follow(ctx) })
	}, "could not watch the clients; trying again", "file", a.options.Clients.File)
	return nil
}

// look reads the file if it has changed.
func (c *clients) look() error {
	path := c.app.options.Clients.File
	if path == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	file, err := os.Open(path)
	if err != nil {
		c.state = nil
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || c.isSame(info) {
		return err
	}
	c.state = info
	c.good.Store(false)
	d, problems, err := rule.ReadDirectory(path, file)
	if err == nil && len(problems) > 0 {
		return &clientsError{problems}
	}
	if err != nil {
		return err
	}
	if now, err := file.Stat(); err != nil || !c.isSame(now) {
		c.state = nil
		return errors.New("the file changed while it was read; replace it in one step, by renaming a new one")
	}
	c.good.Store(true)
	o := &c.app.options.Clients
	c.app.engine.InstallClients(engine.Clients{Directory: d, DenyUnknown: o.DenyUnknown, TrustRequest: o.TrustRequest})
	c.app.options.Logger.Info("loaded the clients", "file", path, "clients", d.Len())
	c.warn()
	return nil
}

func (c *clients) isSame(info os.FileInfo) bool {
	return c.state != nil && os.SameFile(c.state, info) && c.state.Size() == info.Size() && c.state.ModTime().Equal(info.ModTime())
}

// warn tells what in the directory has no effect under the rules in force.
func (c *clients) warn() {
	if _, err := c.app.engine.Clients(); err != nil {
		c.app.options.Logger.Warn("limits or tiers of clients have no effect under the rules in force; weir clients check lists them", "file", c.app.options.Clients.File, "first", err)
	}
}

// follow looks, and tells of what cannot be used. The clients that were read before stay in force.
func (c *clients) follow(ctx context.Context) {
	if watch.Pause(ctx) != nil { // somebody may be writing it
		return
	}
	c.judge(c.look())
}

// reload reads the file whether or not it has changed.
func (c *clients) reload() error {
	c.mu.Lock()
	c.state = nil
	c.mu.Unlock()
	err := c.look()
	c.judge(err)
	return err
}

// judge remembers what a look has found. One that found nothing new leaves it as it was.
func (c *clients) judge(err error) {
	switch was := c.stale.Load(); {
	case err == nil && was != nil && c.good.Load():
		c.stale.Store(nil)
		c.app.metrics.ClientsReloaded(true)
		c.app.options.Logger.Info("the clients can be loaded again", "file", c.app.options.Clients.File, "failed_since", moment(was.since))
	case err == nil || was != nil && was.err.Error() == err.Error():
	default:
		c.stale.Store(&staleRules{time.Now(), err})
		c.app.metrics.ClientsReloaded(false)
		c.app.options.Logger.Error("could not load the clients; the previous ones stay in force", "file", c.app.options.Clients.File, "error", err, "all_errors", "weir clients check "+c.app.options.Clients.File)
	}
}

// trouble is what anybody may know of it.
func (c *clients) trouble() error {
	if s := c.stale.Load(); s != nil {
		return fmt.Errorf("--clients: the file has failed to load since %s, so the previous clients stay in force; the log and weir clients check have the cause", moment(s.since))
	}
	return nil
}
