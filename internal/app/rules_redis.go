package app

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/repo"
	redisrepo "github.com/weirhq/weir/internal/repo/redis"
	"github.com/weirhq/weir/rule"
)

// openRedis keeps the rules in the Redis of the store, by a connection of its own:
// checks should not wait behind a large document.
func (r *rules) openRedis() {
	r.repository = &lateRedis{link: r.app.link(), prefix: r.app.store.config.Options.Prefix}
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
		r.app.options.Logger.Error("the rules could not be kept for a start without Redis", "file", seenFile, "error", err)
	}
}

// remembered goes on with the rules that were last seen. Without any, everything is
// admitted and /readyz says no.
func (r *rules) remembered() {
	if r.app.data == nil {
		return
	}
	found, err := r.app.data.Restore(seenFile, func(file io.Reader) error {
		source, err := io.ReadAll(io.LimitReader(file, rule.MaxDocument+1))
		if err != nil {
			return err
		}
		return r.install(repo.Version{Source: source})
	})
	switch {
	case err != nil:
		r.app.options.Logger.Error("the rules that were last seen cannot be used", "file", seenFile, "error", err)
	case found:
		r.app.options.Logger.Warn("going on with the rules that were last seen", "file", seenFile)
	}
}

// lateRedis is a repository on a Redis that need not be there yet.
type lateRedis struct {
	link   redislink.Source
	prefix string

	mu    sync.Mutex
	inner *redisrepo.Repository
}

func (l *lateRedis) repository() (*redisrepo.Repository, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inner != nil {
		return l.inner, nil
	}
	client, err := l.link()
	if err != nil {
		return nil, err
	}
	l.inner, err = redisrepo.Open(client, redisrepo.Options{Prefix: l.prefix})
	return l.inner, err
}

// Current implements repo.Repository.
func (l *lateRedis) Current(ctx context.Context) (repo.Version, error) {
	r, err := l.repository()
	if err != nil {
		return repo.Version{}, err
	}
	return r.Current(ctx)
}

// Write implements repo.Repository.
func (l *lateRedis) Write(ctx context.Context, d repo.Draft) (repo.Version, error) {
	r, err := l.repository()
	if err != nil {
		return repo.Version{}, err
	}
	return r.Write(ctx, d)
}

// History implements repo.Repository.
func (l *lateRedis) History(ctx context.Context) ([]repo.Version, error) {
	r, err := l.repository()
	if err != nil {
		return nil, err
	}
	return r.History(ctx)
}

// Find implements repo.Repository.
func (l *lateRedis) Find(ctx context.Context, number int64) (repo.Version, error) {
	r, err := l.repository()
	if err != nil {
		return repo.Version{}, err
	}
	return r.Find(ctx, number)
}

// Watch implements repo.Repository.
func (l *lateRedis) Watch(ctx context.Context, changed func(repo.Version, error)) error {
	for {
		r, err := l.repository()
		if err == nil {
			return r.Watch(ctx, changed)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}
