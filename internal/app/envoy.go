package app

import (
	"context"
	"fmt"

	"github.com/weirhq/weir/internal/envoyconfig"
	"github.com/weirhq/weir/internal/server/envoyrls"
)

// openEnvoy reads the configuration of Envoy's rate limit service, and follows it. Files
// that cannot be used keep weir from starting only if that is asked for: otherwise a
// restart during a bad change would take down what still ran.
func (a *App) openEnvoy(_, background context.Context) error {
	o := a.options.Envoy
	a.installDemands(nil)
	if o.Config == "" {
		return nil
	}
	dir, err := envoyconfig.At(o.Config, envoyconfig.Options{
		MergeDomains: o.MergeDomains,
		// The descriptors have names in metrics and statistics.
		Install: func(c *envoyconfig.Config) { a.installDemands(a.envoy.Rules(c)) },
	})
	if err != nil {
		return fmt.Errorf("--envoy-config: %w", err)
	}
	service := o.Options
	service.Engine, service.Config, service.Logger = a.engine, dir.Config, a.options.Logger
	if a.envoy, err = envoyrls.New(service); err != nil {
		return err
	}
	a.envoyDir = dir
	switch err := dir.Reload(); {
	case err == nil:
		a.reportEnvoy(dir.Config(), nil)
	case o.RequireConfig:
		return fmt.Errorf("--envoy-config: %w", err)
	}
	a.background.Go(func() {
		a.follow(background, func() error { return dir.Watch(background, a.reportEnvoy) }, "could not watch the Envoy configuration; trying again")
	})
	return nil
}

// reportEnvoy logs which configuration is in force, and what keeps a newer one from it.
func (a *App) reportEnvoy(c *envoyconfig.Config, trouble error) {
	logger := a.options.Logger
	a.metrics.EnvoyReloaded(trouble == nil)
	switch {
	case trouble != nil && c == nil:
		logger.Error("no Envoy configuration is loaded; requests from Envoy get an error until the files are corrected", "directory", a.options.Envoy.Config, "error", trouble)
	case trouble != nil:
		logger.Error("could not load the Envoy configuration; the previous one stays in force", "directory", a.options.Envoy.Config, "error", trouble)
	default:
		for _, w := range a.envoyDir.Warnings() {
			logger.Warn("warning about the Envoy configuration", "problem", w.String())
		}
		logger.Info("loaded the Envoy configuration", "directory", a.options.Envoy.Config, "domains", len(c.Domains()), "descriptors", c.Descriptors())
	}
}
