package redis

import (
	"context"

	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/rules/repo"
)

// Watch implements repo.Repository. While Redis is unavailable, or has lost its data,
// the version that this repository has read or written last stays in force.
func (r *Repository) Watch(ctx context.Context, changed func(repo.Version, error)) error {
	for { // what was never there has not changed
		if _, err := r.Client(); err == nil {
			break
		}
		if err := clock.Sleep(ctx, clock.Jitter(r.poll)); err != nil {
			return err
		}
	}
	f := follower{repository: r, Notifier: repo.Notifier{Changed: changed}}
	return r.watch(ctx, func() { f.follow(ctx) })
}

// follower is one watch.
type follower struct {
	repo.Notifier
	repository *Repository
	seen       *state
	down       error  // the first that was heard of the present trouble with Redis
	why        string // and what kind of trouble that is
}

// follow looks whether there is something new, and tells.
func (f *follower) follow(ctx context.Context) {
	s, err := f.next(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		// A server that comes back gives many reasons one after the other. One is
		// enough.
		if why := kindOf(err); f.down == nil || why != f.why {
			f.down, f.why = err, why
		}
		f.Tell(nil, f.down)
		return
	}
	f.down = nil
	if s.version != nil {
		if err := f.repository.lost(s.version.Number); err != nil {
			f.Tell(nil, err)
			return
		}
		f.repository.know(s.version.Number)
	}
	f.seen = s
	f.Tell(s.version, s.trouble)
}

// next is the state, the one that was seen if nothing has changed.
func (f *follower) next(ctx context.Context) (*state, error) {
	known := mark{number: "unknown"}
	if f.seen != nil {
		known = f.seen.mark
	}
	s, err := f.repository.readState(ctx, known)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return f.seen, nil
	}
	return s, f.repository.judge(ctx, s)
}

// kindOf returns the kind of an error, so that each kind is reported once. All errors of
// an unavailable Redis are one kind; other replies differ by their text.
func kindOf(err error) string {
	reply := redislink.Reply(err)
	if reply == "" || redislink.Unavailable(err) {
		return "away"
	}
	return reply
}
