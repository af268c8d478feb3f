package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clients"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/rule"
)

// Clients are a directory of clients.
type Clients struct {
	// File has the clients, as rule.ReadDirectory reads them. Default none: the API changes them.
	File string

	// DenyUnknown and TrustRequest are as in engine.Clients.
	DenyUnknown  bool
	TrustRequest bool
}

// clientsError reports a file that cannot be used.
type clientsError struct{ problems rule.Problems }

func (e *clientsError) Error() string {
	return fmt.Sprintf("%s (%s)", strings.TrimSpace(e.problems[0].String()), notation.Count(len(e.problems), "error"))
}

// openClients brings the clients into force: those of a file, or those that the API changes, which are in the Redis of the store,
// or beside the overrides.
func (a *App) openClients(ctx, background context.Context) error {
	if a.options.Clients.File != "" {
		return a.openClientsFile(background)
	}
	store, err := a.clientsStore()
	if err != nil {
		return err
	}
	a.registry = clients.New(clients.Options{Store: store, Install: a.installClients, Usable: a.metrics.ClientsReloaded, Logger: a.options.Logger})
	o := &a.options.Clients
	a.engine.InstallClients(engine.Clients{Directory: rule.NewDirectory(), DenyUnknown: o.DenyUnknown, TrustRequest: o.TrustRequest, Unread: true})
	if err := a.registry.Look(ctx); err != nil && a.store.redis == nil {
		return fmt.Errorf("could not read the clients: %w", err)
	} else if err == nil && a.registry.Count() == 0 && o.DenyUnknown {
		a.options.Logger.Warn("there are no clients, so --clients-unknown deny denies every request")
	}
	a.follow(background, a.registry.Follow, "could not watch the clients; trying again")
	a.warnClients()
	a.clientsChanged.Store(false)
	a.follow(background, a.watchIdle, "could not look for settings of clients without effect")
	return nil
}

// clientsStore is where clients are without a file of their own.
func (a *App) clientsStore() (clients.Store, error) {
	switch {
	case a.store.redis != nil:
		return clients.NewRedis(a.link(), clients.RedisOptions{Prefix: a.store.config.Options.Prefix, Timeout: a.store.timeout(time.Second)})
	case a.data == nil:
		return nil, nil
	}
	journal := clients.NewJournal(a.data.file(clientsFile), a.options.Logger)
	a.later(journal.Close)
	return journal, nil
}

// installClients brings a directory into force. One without clients costs the checks nothing.
func (a *App) installClients(d *rule.Directory) {
	o := &a.options.Clients
	if d.Len() == 0 && !o.DenyUnknown {
		d = nil
	}
	a.engine.InstallClients(engine.Clients{Directory: d, DenyUnknown: o.DenyUnknown, TrustRequest: o.TrustRequest})
	a.clientsChanged.Store(true)
}

// openClientsFile follows a file of clients.
func (a *App) openClientsFile(background context.Context) error {
	o := &a.options.Clients
	a.registry = clients.New(clients.Options{Logger: a.options.Logger})
	a.clients = &followed{
		app: a, flag: "--clients", what: "the clients", path: o.File, read: a.readClients,
		reloaded: a.metrics.ClientsReloaded, help: "the log and weir clients check have",
	}
	err := a.clients.open(background)
	if wrong, ok := errors.AsType[*clientsError](err); ok {
		return fmt.Errorf("the clients in %s have errors:\n%s", o.File, wrong.problems)
	}
	if err != nil {
		return fmt.Errorf("--clients: %w", err)
	}
	return nil
}

func (a *App) readClients(file *os.File) (int, error) {
	d, problems, err := rule.ReadDirectory(a.options.Clients.File, file)
	if err == nil && len(problems) > 0 {
		err = &clientsError{problems}
	}
	if err != nil {
		return 0, err
	}
	a.registry.Show(d)
	a.installClients(d)
	a.warnClients()
	return d.Len(), nil
}

// reloadClients reads the clients now.
func (a *App) reloadClients(ctx context.Context) error {
	if a.clients != nil {
		return a.clients.reload()
	}
	return a.registry.Look(ctx)
}

// clientsTrouble is what anybody may know of clients that are not current.
func (a *App) clientsTrouble() error {
	if a.clients != nil {
		return a.clients.trouble()
	}
	s := a.registry.Status()
	switch {
	case s.Err == nil && s.Unusable != nil:
		return errors.New("clients: at least one that is in the store cannot be used, so it is unknown, and those below it; the log has the cause")
	case s.Err == nil:
		return nil
	case !s.Loaded:
		return fmt.Errorf("clients: they could not be read since %s, so none is known; the log has the cause", moment(s.Since))
	}
	if errors.Is(s.Err, clients.ErrLost) {
		return fmt.Errorf("clients: %w", s.Err)
	}
	return fmt.Errorf("clients: they may be outdated since %s, because the store could not be read; the log has the cause", moment(s.Since))
}

// idleEvery is how often it is looked for settings of clients that have no effect.
const idleEvery = time.Minute

// watchIdle warns of what changes of clients have brought that has no effect.
func (a *App) watchIdle(ctx context.Context) error {
	for clock.Sleep(ctx, clock.Jitter(idleEvery)) == nil {
		if a.clientsChanged.Swap(false) {
			a.warnClients()
		}
	}
	return ctx.Err()
}

// warnClients tells what in the directory has no effect under the rules in force.
func (a *App) warnClients() {
	if _, err := a.engine.Clients(); err != nil {
		from := "the store"
		if a.clients != nil {
			from = a.options.Clients.File
		}
		a.options.Logger.Warn("limits or tiers of clients have no effect under the rules in force; weir clients check lists them", "from", from, "first", err)
	}
}
