package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/rules/repo"
	filerepo "github.com/weirhq/weir/internal/rules/repo/file"
	redisrepo "github.com/weirhq/weir/internal/rules/repo/redis"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/rule"
)

// rules brings the document of rules into force, whenever it changes.
type rules struct {
	repository repo.Repository
	where      string // for people
	app        *App

	loaded atomic.Bool // some version is in force
	stale  atomic.Pointer[staleRules]

	mu sync.Mutex // one version at a time
}

// staleRules is why a later document than the one in force could not be loaded, and since when.
type staleRules struct {
	since time.Time
	err   error
}

// notLoaded is since when the stored rules cannot be loaded, and why; the zero time if they can.
func (r *rules) notLoaded() (since time.Time, err error) {
	if s := r.stale.Load(); s != nil {
		return s.since, s.err
	}
	return time.Time{}, nil
}

// trouble is what anybody may know of it.
func (r *rules) trouble() error {
	since, err := r.notLoaded()
	if err == nil {
		return nil
	}
	_, version := r.app.engine.Rules()
	return fmt.Errorf("--rules: the stored rules have failed to load since %s, so version %d stays in force; the log and weir rules list have the cause", moment(since), version)
}

func (a *App) openRules(ctx, background context.Context) error {
	a.rules = &rules{app: a, where: a.options.Rules}
	var err error
	switch a.options.Rules {
	case NoRules:
		a.rules.repository = noRules{&ruleedit.Reader{Options: a.ruleOptions()}}
	case InRedis:
		// By a connection of its own: checks should not wait behind a large document.
		a.rules.repository, err = redisrepo.Open(a.link(), a.repoOptions())
	default:
		_, missing := os.Stat(a.options.Rules)
		a.rules.repository, err = filerepo.Open(a.options.Rules, filerepo.Options{Create: true, History: a.options.historyDir(), Rules: a.ruleOptions()})
		if err != nil {
			err = fmt.Errorf("--rules: %w", err)
		} else if errors.Is(missing, fs.ErrNotExist) { // perhaps it is misspelled
			a.options.Logger.Info("created the rules file, because it did not exist", "rules", a.options.Rules)
		}
	}
	if err != nil {
		return err
	}
	a.editor = manage.NewEditor(a.rules.repository, a.rules.install)
	if err := a.rules.begin(ctx); err != nil {
		return err
	}
	a.follow(background, a.rules.watch, "could not watch the rules; trying again", "from", a.rules.where)
	return nil
}

// ruleOptions are those of the rules in force.
func (a *App) ruleOptions() rule.Options {
	o := a.options.RuleOptions
	o.Failed = func(c *rule.Entry, err error) {
		a.options.Logger.Warn("an expression of a rule cannot be evaluated for some requests", "rule", c.ID, "error", err)
	}
	return o
}

// repoOptions are those of documents in the Redis of the store.
func (a *App) repoOptions() redisrepo.Options {
	return redisrepo.Options{Prefix: a.store.config.Options.Prefix, Timeout: a.store.timeout(redisrepo.DefaultTimeout), Rules: a.ruleOptions()}
}

// historyDir is where older versions of a file of rules are kept.
func (o *Options) historyDir() string {
	if o.Data != "" {
		return filepath.Join(o.Data, "rules.history")
	}
	return o.Rules + ".history"
}

// begin puts the first version into force. A file that cannot be used keeps weir from
// starting; a Redis that does not answer need not.
func (r *rules) begin(ctx context.Context) error {
	version, err := r.repository.Current(ctx)
	if err == nil {
		err = r.install(version)
	}
	var invalid *rule.InvalidError
	switch {
	case errors.As(err, &invalid):
		return fmt.Errorf("the rules in %s have errors:\n%s", r.where, invalid.Problems)
	case err != nil && (r.where != InRedis || r.app.options.RequireStore):
		return fmt.Errorf("could not read the rules from %s: %w", r.where, err)
	case err != nil:
		r.app.options.Logger.Error("could not read the rules", "from", r.where, "error", err)
		r.remembered()
		return nil
	}
	if table, _ := r.app.engine.Rules(); len(table.Rules()) == 0 && !r.app.options.Envoy.isServed() {
		r.app.options.Logger.Warn("there are no rules; every request is allowed", "rules", r.where)
	}
	return nil
}

// install puts a version into force.
func (r *rules) install(v repo.Version) error {
	table, err := v.Document.Table()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, number := r.app.engine.Rules()
	r.app.engine.Install(table, v.Number)
	r.app.metrics.InstallSource(v.Source)
	r.app.editor.Installed(v)
	if v.Replaced != nil {
		r.app.options.Logger.Warn("a change of the rules replaced stored rules with errors", "rules", r.where, "version", v.Number, "author", v.Author, "copy", cmp.Or(v.Replaced.Copy, "none"))
	}
	again := r.loaded.Swap(true)
	if again && number == v.Number {
		return nil
	}
	if again {
		r.app.options.Logger.Info("loaded the rules", "version", v.Number, "author", v.Author, "summary", v.Summary, "rules", len(table.Rules()))
	}
	r.warnConcurrency(table)
	r.warnRestart(table)
	r.app.warnClients()
	r.app.warnPrices(table)
	r.warnLeases(table)
	if problems := v.Document.Warnings; len(problems) > 0 {
		r.app.options.Logger.Warn("the rules have warnings; weir rules validate shows all of them", "rules", r.where, "warnings", len(problems),
			"first", problems[0].Code+" "+problems[0].Message)
	}
	return nil
}

// reload looks now.
func (r *rules) reload(ctx context.Context) error {
	version, err := r.repository.Current(ctx)
	if _, number := r.app.engine.Rules(); err == nil && (version.Trouble == nil || version.Number > number) {
		err = r.install(version)
	}
	if err == nil && !errors.Is(version.Trouble, repo.ErrNotRecorded) {
		err = version.Trouble
	}
	if err != nil {
		return fmt.Errorf("the rules in %s: %w", r.where, err)
	}
	return nil
}

// watch installs what comes without an error, and reports the others.
func (r *rules) watch(ctx context.Context) error {
	return r.repository.Watch(ctx, func(v repo.Version, trouble error) {
		if trouble == nil {
			trouble = r.install(v)
		}
		if errors.Is(trouble, repo.ErrNotRecorded) {
			r.app.options.Logger.Error("could not add the rules to the history", "from", r.where, "error", trouble)
			return
		}
		if trouble != nil {
			since, _ := r.notLoaded()
			if since.IsZero() {
				since = time.Now()
			}
			r.stale.Store(&staleRules{since, trouble})
			r.app.metrics.ReloadFailed()
			attributes := []any{"from", r.where, "error", trouble}
			if invalid, ok := errors.AsType[*rule.InvalidError](trouble); ok && len(invalid.Problems) > 1 && r.where != InRedis {
				attributes = append(attributes, "all_errors", "weir rules validate "+r.where)
			}
			r.app.options.Logger.Error("could not load the rules; the previous ones stay in force", attributes...)
			return
		}
		if was := r.stale.Swap(nil); was != nil {
			r.app.options.Logger.Info("the stored rules can be loaded again", "from", r.where, "version", v.Number, "failed_since", moment(was.since))
		}
		r.remember(ctx, v)
	})
}

// follow watches something in the background until the context ends. An error is logged, and it
// goes on.
func (a *App) follow(ctx context.Context, watch func(context.Context) error, message string, attributes ...any) {
	a.background.Go(func() {
		for ctx.Err() == nil {
			err := watch(ctx)
			if ctx.Err() != nil {
				return
			}
			a.options.Logger.Error(message, append(attributes, "error", err)...)
			_ = clock.Sleep(ctx, time.Second)
		}
	})
}

// NoRules, as Options.Rules, keeps none: weir reads and makes no file.
const NoRules = "none"

// usualRules returns the default of --rules. A service for Envoy alone has its limits
// elsewhere and needs no rules file, and some directories cannot have one; but a file that
// exists, or existed, is used.
func (o *Options) usualRules() string {
	if isMissing(DefaultRules) && isMissing(DefaultRules+".history") && (o.Envoy.isServed() || !isWritable(".")) {
		return NoRules
	}
	return DefaultRules
}

// isWritable tries it out, which is the same on every system.
func isWritable(dir string) bool {
	file, err := os.CreateTemp(dir, ".weir-*")
	if err != nil {
		return false
	}
	file.Close()
	return os.Remove(file.Name()) == nil
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}

var errNoRules = errors.New("app: weir runs without rules; set --rules to a file")

// noRules is a repository without rules, which never change.
type noRules struct{ *ruleedit.Reader }

func (n noRules) Current(context.Context) (repo.Version, error) {
	d, err := n.Read([]byte("rules: []\n"))
	return repo.Version{Source: d.Source, Document: d}, err
}

func (noRules) Write(context.Context, repo.Draft) (repo.Version, error) {
	return repo.Version{}, errNoRules
}

func (noRules) History(context.Context) ([]repo.Version, error) { return nil, nil }

func (noRules) Find(context.Context, int64) (repo.Version, error) {
	return repo.Version{}, repo.ErrNoVersion
}

func (noRules) Watch(ctx context.Context, _ func(repo.Version, error)) error {
	<-ctx.Done()
	return ctx.Err()
}

// remember keeps rules that came from elsewhere for a start without Redis, as soon as this
// one has succeeded.
func (r *rules) remember(ctx context.Context, v repo.Version) {
	if r.where != InRedis || r.app.data == nil {
		return
	}
	select {
	case <-r.app.started:
	case <-ctx.Done():
		return
	}
	err := r.app.data.Save(seenFile, func(w io.Writer) error {
		_, err := w.Write(v.Source)
		return err
	})
	if err != nil {
		r.app.options.Logger.Error("could not save the rules for a start without Redis", "file", seenFile, "error", err)
	}
}

// remembered goes on with the rules that were last seen. Without any, everything is
// allowed and /readyz says no.
func (r *rules) remembered() {
	if r.app.data == nil {
		return
	}
	found, err := r.app.data.Restore(seenFile, func(file io.Reader) error {
		source, err := io.ReadAll(io.LimitReader(file, rule.MaxDocument+1))
		if err != nil {
			return err
		}
		d, err := r.repository.Read(source)
		if err != nil {
			return err
		}
		return r.install(repo.Version{Source: source, Document: d})
	})
	switch {
	case err != nil:
		r.app.options.Logger.Error("could not load the rules that were saved last", "file", seenFile, "error", err)
	case found:
		r.app.options.Logger.Warn("using the rules that were saved last", "file", seenFile)
	}
}

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
		a.restoreAndKeep(kept{overridesFile, "overrides", a.overrides.Snapshot, a.overrides.Restore})
	}
	_ = a.overrides.Look(ctx) // which logs why not, and is tried again
	a.follow(background, a.overrides.Follow, "could not watch the overrides; trying again")
	return nil
}

// overridesStore is where usage is: all instances that share one have the same overrides,
// wherever their rules come from. Without a Redis it is beside the history of the rules.
func (a *App) overridesStore() (repo.Store, error) {
	what := repo.StoreOptions{Name: "overrides", Most: manage.MaxOverrideBytes}
	if a.store.redis != nil {
		return redisrepo.OpenStore(a.link(), a.repoOptions(), what)
	}
	return filerepo.OpenStore(a.options.historyDir(), what)
}
