package app

import (
	"context"
	"io"

	"github.com/weirhq/weir/internal/repo"
	redisrepo "github.com/weirhq/weir/internal/repo/redis"
	"github.com/weirhq/weir/rule"
)

// openRedis keeps the rules in the Redis of the store, by a connection of its own:
// checks should not wait behind a large document.
func (r *rules) openRedis() (err error) {
	r.repository, err = redisrepo.Open(r.app.link(), redisrepo.Options{Prefix: r.app.store.config.Options.Prefix})
	return err
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
