package app

import (
	"context"

	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/internal/override"
	overridefile "github.com/weirhq/weir/internal/override/file"
	overrideredis "github.com/weirhq/weir/internal/override/redis"
)

// openOverrides brings temporary overrides into force. They never keep weir from starting.
func (a *App) openOverrides(ctx, background context.Context) error {
	if a.options.Rules == NoRules {
		return nil
	}
	place, err := a.overridesPlace()
	if err != nil {
		return err
	}
	a.overrides = manage.NewOverrides(manage.OverrideOptions{Place: place, Engine: a.engine, Logger: a.options.Logger})
	if a.store.redis != nil {
		a.keep(kept{overridesFile, "overrides", a.overrides.Snapshot, a.overrides.Restore})
	}
	_ = a.overrides.Look(ctx) // which logs why not, and is tried again
	a.background.Go(func() {
		a.follow(background, func() error { return a.overrides.Follow(background) }, "could not watch the overrides; trying again")
	})
	return nil
}

// overridesPlace is where usage is: all instances that share one have the same overrides,
// wherever their rules come from. Without a Redis it is beside the history of the rules.
func (a *App) overridesPlace() (override.Place, error) {
	if a.store.redis != nil {
		return overrideredis.Open(a.link(), overrideredis.Options{Prefix: a.store.config.Options.Prefix, Timeout: a.store.timeout(overrideredis.DefaultTimeout)}), nil
	}
	return overridefile.In(a.options.historyDir())
}
