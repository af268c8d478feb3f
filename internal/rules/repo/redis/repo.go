// Package redis keeps the document of rules in Redis, for many instances at once.
//
// With the prefix "weir:" its keys are
//
//	weir:{rules}:current  a hash: number, time, author, summary, sha256, source
//	weir:{rules}:history  a hash: number → time, author and summary as JSON
//	weir:{rules}:sources  a hash: number → source
//
// and the channel weir:{rules}:changed tells of new versions. The braces put them all on
// one slot of a cluster. Times are microseconds, by Redis's clock.
//
// These keys do not expire, unlike most other keys of weir, because rules are
// configuration and must stay even if they do not change for months. They are bounded
// instead: repo.MaxHistory versions, and at most 32 MB. A Redis that keeps rules should
// write to disk, and have the maxmemory-policy noeviction or one of volatile-*, which
// do not evict keys that do not expire.
//
// A version is written by a script that looks first whether the latest is still the one
// that it is based on. To mend a document by hand, set source and a higher number:
//
//	redis-cli -x HSET weir:{rules}:current number 8 source < rules.yaml
//
// It becomes a version by "redis" when an instance sees it. One with errors is reported
// and not used; the latest version in the history is that can be.
package redis

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/ruleedit"
)

// maxBytes bounds the sources of all versions together. One of the greatest size should
// not cost a hundred times that.
const maxBytes = 32 << 20

// Repository is a document of rules in Redis. It is safe for concurrent use.
type Repository struct {
	*ruleedit.Reader
	location // its keys are current, history and sources

	maxBytes int
	known    atomic.Int64 // the last version above 0 that was read or written here
}

var _ repo.Repository = (*Repository)(nil)

// Open returns a repository on a Redis that need not be there yet: client returns a client,
// or why there is none at the moment. It may be one of a server, of Sentinels or of a
// cluster. It should not be the client of a store: checks would have to wait behind a large
// document. Nothing is asked of Redis yet.
func Open(client func() (rueidis.Client, error), o Options) (*Repository, error) {
	p, err := o.locate(client, "rules", "{rules}:current", "{rules}:history", "{rules}:sources")
	if err != nil {
		return nil, err
	}
	p.channel = strings.TrimSuffix(p.keys[0], "current") + "changed"
	return &Repository{Reader: &ruleedit.Reader{Options: o.Rules}, location: p, maxBytes: maxBytes}, nil
}

// Current implements repo.Repository. Before the first write, it is version 0, which
// has no rules.
func (r *Repository) Current(ctx context.Context) (repo.Version, error) {
	s, err := r.look(ctx)
	if err != nil {
		return repo.Version{}, err
	}
	if s.version == nil {
		return repo.Version{}, s.trouble
	}
	r.know(s.version.Number)
	v := *s.version
	if v.Trouble = s.trouble; v.Trouble == nil {
		v.Trouble = r.lost(v.Number)
	}
	return v, nil
}

// know notes a version that somebody here may go by from now on.
func (r *Repository) know(number int64) {
	if number > 0 {
		r.known.Store(number)
	}
}

// lost is an error if a version was known here and nothing is there any more: not what anybody
// wants, but what a Redis without a disk does.
func (r *Repository) lost(number int64) error {
	if known := r.known.Load(); number == 0 && known > 0 {
		return fmt.Errorf("rules: Redis has lost the rules; version %d stays in force until they are written again", known)
	}
	return nil
}

// History implements repo.Repository.
func (r *Repository) History(ctx context.Context) ([]repo.Version, error) {
	current, err := r.Current(ctx)
	if err != nil {
		return nil, err
	}
	versions, err := r.heads(ctx)
	if err != nil {
		return nil, err
	}
	return repo.History(current, versions), nil
}

// Find implements repo.Repository.
func (r *Repository) Find(ctx context.Context, number int64) (repo.Version, error) {
	current, err := r.Current(ctx)
	switch {
	case err != nil:
		return repo.Version{}, err
	case number < 1:
		return repo.Version{}, repo.ErrNoVersion
	case number == current.Number:
		return current, nil
	}
	return r.load(ctx, number)
}
