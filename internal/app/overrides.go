package app

import (
	"context"

	"github.com/weirhq/weir/internal/manage"
	"github.com/weirhq/weir/internal/override"
	"github.com/weirhq/weir/internal/repo"
	filerepo "github.com/weirhq/weir/internal/repo/file"
	redisrepo "github.com/weirhq/weir/internal/repo/redis"
)

// openOverrides brings temporary overrides into force. They never keep weir from starting.
func (a *App) openOverrides(ctx, background context.Context) error {
	if a.options.Rules == NoRules {
		return nil
	}
	store, err := a.overridesStore()
	if err != nil {
		return err
	}
	a.overrides = manage.NewOverrides(manage.OverrideOptions{Store: store, Engine: a.engine, Logger: a.options.Logger})
	if a.store.redis != nil {
		a.keep(kept{overridesFile, "overrides", a.overrides.Snapshot, a.overrides.Restore})
	}
	_ = a.overrides.Look(ctx) // which logs why not, and is tried again
	a.background.Go(func() {
		a.follow(background, func() error { return a.overrides.Follow(background) }, "could not watch the overrides; trying again")
	})
	return nil
}

// overridesStore is where usage is: all instances that share one have the same overrides,
// wherever their rules come from. Without a Redis it is beside the history of the rules.
func (a *App) overridesStore() (repo.Store, error) {
	what := repo.StoreOptions{Name: "overrides", Most: override.MaxDocument}
	if a.store.redis != nil {
		return redisrepo.OpenStore(a.link(), a.repoOptions(), what)
	}
	return filerepo.OpenStore(a.options.historyDir(), what)
}
