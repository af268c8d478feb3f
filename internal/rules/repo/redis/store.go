package redis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/rules/repo"
)

// Store is a document in Redis without a history, for many instances at once. It is safe for
// concurrent use.
//
// With the prefix "weir:" and the name overrides, the key is weir:{overrides}, a hash with the
// fields sha256 and source. The channel weir:{overrides}:changed reports changes. The key does
// not expire: what is in it must stay even if it does not change for months.
type Store struct {
	location
	most int
}

var _ repo.Store = (*Store)(nil)

// OpenStore returns a store in Redis. The client is as in Open; nothing is sent yet.
func OpenStore(client func() (rueidis.Client, error), o Options, what repo.StoreOptions) (*Store, error) {
	p, err := o.locate(client, what.Name, "{"+what.Name+"}")
	if err != nil {
		return nil, err
	}
	p.channel = p.keys[0] + ":changed"
	return &Store{p, what.Most}, nil
}

// Read implements repo.Store.
func (s *Store) Read(ctx context.Context, known repo.Revision) ([]byte, bool, error) {
	answer, err := s.exec(ctx, storeReadScript, string(known), strconv.Itoa(s.most))
	switch {
	case err != nil:
		return nil, false, s.explain(err)
	case len(answer) == 0:
		return nil, false, nil
	case len(answer) == 1:
		return nil, false, fmt.Errorf("%s: the document in %s has %s bytes; the maximum is %d; remove it", s.Name, s.keys[0], answer[0], s.most)
	}
	return []byte(answer[1]), true, nil
}

// Write implements repo.Store. It never sends a write twice, because the second write
// would conflict with the first.
func (s *Store) Write(ctx context.Context, base repo.Revision, source []byte) error {
	var done int64
	err := s.Do(ctx, func(ctx context.Context, c rueidis.Client) (err error) {
		done, err = storeWriteScript.Exec(ctx, c, s.keys, []string{
			string(base), string(repo.RevisionOf(source)), rueidis.BinaryString(source), s.channel,
		}).AsInt64()
		return err
	})
	switch {
	case err != nil:
		return s.explain(err)
	case done == 0:
		return repo.ErrChanged
	}
	return nil
}

// Watch implements repo.Store.
func (s *Store) Watch(ctx context.Context, look func()) error { return s.watch(ctx, look) }
