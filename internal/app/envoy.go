package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/internal/envoy/envoyxds"
	"github.com/weirhq/weir/internal/server/envoyrls"
	"github.com/weirhq/weir/internal/server/respapi"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
)

// Envoy is what makes a server a rate limit service for Envoy.
type Envoy struct {
	// Config is the directory of its configuration. XDS is the control plane that has it
	// instead. Default none: no such service.
	Config string
	XDS    XDS

	// RequireConfig makes Start fail if the configuration cannot be used. Default
	// false: it starts, and Envoy's requests get an error until the files are mended.
	RequireConfig bool

	// ReadyWithConfig makes it ready only once a configuration was loaded. Default false, unless it comes by XDS.
	ReadyWithConfig bool

	// MergeDomains, Calendar and Holds are as in envoyconfig.Options.
	MergeDomains bool
	Calendar     *time.Location
	Holds        []envoyconfig.Hold

	// Options of the service. Engine, Config and Logger are filled in.
	envoyrls.Options
}

// XDS is an xDS control plane.
type XDS struct {
	// Options of the client. Server is the control plane; default none. TLS, Read, Changed and
	// Logger are filled in.
	envoyxds.Options

	// UseTLS connects with TLS, and so do Files that are set. Default without.
	UseTLS bool
	Files  trust.ClientCert
}

// isServed reports whether there is such a service.
func (e *Envoy) isServed() bool { return e.Config != "" || e.XDS.Server != "" }

// check reports settings that contradict each other.
func (e *Envoy) check() error {
	x := &e.XDS
	switch {
	case x.Server == "" && (x.UseTLS || !x.Files.IsZero() || len(x.NodeMetadata) > 0 || x.HeaderFile != ""):
		return errors.New("--envoy-xds-…: these flags require --envoy-xds; set the address of the control plane")
	case x.Server == "":
		return nil
	case e.Config != "":
		return errors.New("--envoy-xds and --envoy-config exclude each other; the configuration comes from the control plane or from files")
	case e.RequireConfig:
		return errors.New("--envoy-require-config requires --envoy-config; with --envoy-xds, weir is ready only after a configuration is loaded")
	}
	return checkAddress("--envoy-xds", x.Server, "localhost:18000", "")
}

// openEnvoy reads the configuration of Envoy's rate limit service, and follows it.
func (a *App) openEnvoy(_, background context.Context) error {
	a.installDemands(nil)
	if !a.options.Envoy.isServed() {
		return nil
	}
	read := envoyconfig.Options{
		MergeDomains: a.options.Envoy.MergeDomains, Calendar: a.options.Envoy.Calendar, Holds: a.options.Envoy.Holds,
		// The descriptors have names in metrics and statistics.
		Install: func(c *envoyconfig.Config) { a.installDemands(a.envoy.Rules(c)) },
	}
	service := a.options.Envoy.Options
	service.Engine, service.Checks, service.Logger = a.engine, a.checks, a.options.Logger
	service.Config = func() *envoyconfig.Config { return a.envoyConfig() }
	var err error
	if a.envoy, err = envoyrls.New(service); err != nil {
		return err
	}
	if a.options.Envoy.Config != "" {
		return a.openEnvoyDir(background, read)
	}
	return a.openEnvoyXDS(background, read)
}

// openEnvoyDir follows files. Those that cannot be used keep weir from starting only if that
// is asked for: otherwise a restart during a bad change would take down what still ran.
func (a *App) openEnvoyDir(background context.Context, read envoyconfig.Options) error {
	o := a.options.Envoy
	dir, err := envoyconfig.At(o.Config, read)
	if err != nil {
		return fmt.Errorf("--envoy-config: %w", err)
	}
	a.envoyDir, a.envoyConfig = dir, dir.Config
	report := func(c *envoyconfig.Config, trouble error) {
		a.reportEnvoy(c, dir.Warnings(), trouble, "directory", o.Config)
	}
	switch err := dir.Reload(); {
	case err == nil:
		report(dir.Config(), nil)
	case o.RequireConfig:
		return fmt.Errorf("--envoy-config: %w", err)
	}
	watch := func(ctx context.Context) error { return dir.Watch(ctx, report) }
	a.follow(background, watch, "could not watch the Envoy configuration; trying again")
	return nil
}

// openEnvoyXDS follows a control plane, which may be unavailable at the start.
func (a *App) openEnvoyXDS(background context.Context, read envoyconfig.Options) error {
	x := a.options.Envoy.XDS
	o := x.Options
	o.Read, o.Logger = read, a.options.Logger
	o.Changed = func(u envoyxds.Update) {
		a.reportEnvoy(u.Config, u.Warnings, u.Err, "xds", x.Server, "version", u.Version)
	}
	if x.UseTLS || !x.Files.IsZero() {
		o.TLS = x.Files.TLS
	}
	client, err := envoyxds.New(o)
	if err != nil {
		return fmt.Errorf("--envoy-xds: %w", err)
	}
	a.envoyXDS, a.envoyConfig = client, client.Config
	// For a start while the control plane is unavailable.
	a.restoreAndKeep(kept{xdsFile, "Envoy configuration", client.Snapshot, client.Restore})
	a.background.Go(func() { client.Run(background) })
	return nil
}

// reportEnvoy logs which configuration is in force, and what keeps a newer one from it.
func (a *App) reportEnvoy(c *envoyconfig.Config, warnings rule.Problems, trouble error, from ...any) {
	logger := a.options.Logger.With(from...)
	a.metrics.EnvoyReloaded(trouble == nil)
	switch {
	case trouble != nil && c == nil:
		logger.Error("no Envoy configuration is loaded; requests from Envoy get an error until there is one without errors", "error", trouble)
	case trouble != nil:
		logger.Error("could not load the Envoy configuration; the previous one stays in force", "error", trouble)
	default:
		for _, w := range warnings {
			logger.Warn("warning about the Envoy configuration", "problem", w.String())
		}
		if own := c.Own(); len(own) > 0 { // for who may want to go back
			logger = logger.With("only_in_weir", strings.Join(own, ","))
		}
		logger.Info("loaded the Envoy configuration", "domains", len(c.Domains()), "descriptors", c.Descriptors())
	}
}

// installDemands tells the observers of limits that are not in the rules: those of Envoy's
// configuration, and those that Redis clients bring with them.
func (a *App) installDemands(envoy []*rule.Entry) {
	if a.options.RESP != Off {
		envoy = append(envoy, respapi.Rules()...)
	}
	a.engine.InstallDemands(envoy)
}
