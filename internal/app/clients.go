package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/notation"
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

// openClients brings the file of clients into force.
func (a *App) openClients(_, background context.Context) error {
	o := &a.options.Clients
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
	o := &a.options.Clients
	d, problems, err := rule.ReadDirectory(o.File, file)
	if err == nil && len(problems) > 0 {
		err = &clientsError{problems}
	}
	if err != nil {
		return 0, err
	}
	a.engine.InstallClients(engine.Clients{Directory: d, DenyUnknown: o.DenyUnknown, TrustRequest: o.TrustRequest})
	a.warnClients()
	return d.Len(), nil
}

// warnClients tells what in the directory has no effect under the rules in force.
func (a *App) warnClients() {
	if _, err := a.engine.Clients(); a.clients != nil && err != nil {
		a.options.Logger.Warn("limits or tiers of clients have no effect under the rules in force; weir clients check lists them", "file", a.options.Clients.File, "first", err)
	}
}
