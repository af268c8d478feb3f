package redis

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/ruleedit"
)

// Write implements repo.Repository. An error of the network leaves open whether it was
// written: nothing is sent twice, for the second would be a conflict with the first.
func (r *Repository) Write(ctx context.Context, d repo.Draft) (repo.Version, error) {
	var next repo.Version
	for range 10 {
		s, err := r.look(ctx)
		if err != nil {
			return repo.Version{}, err
		}
		var current repo.Version
		if s.version != nil {
			current = *s.version
		}
		if d.Base != current.Number {
			return repo.Version{}, &repo.ConflictError{Base: d.Base, Current: current}
		}
		if next.Document == nil {
			if next, err = d.Ready(r.Reader, current.Document); err != nil {
				return repo.Version{}, err
			}
		}
		v, err := r.swap(ctx, s, next)
		if !errors.Is(err, errLost) {
			return v, err
		}
	}
	return repo.Version{}, errLost
}

// errLost is a race that was lost.
var errLost = errors.New("rules: other processes keep changing the keys; try again later")

// swap writes what is ready if the state is still as it was.
func (r *Repository) swap(ctx context.Context, s *state, next repo.Version) (repo.Version, error) {
	if _, err := r.Client(); err != nil {
		return repo.Version{}, err // nothing is sent
	}
	answer, err := r.exec(ctx, writeScript,
		strconv.Itoa(repo.MaxHistory), strconv.Itoa(r.maxBytes), s.mark.number, s.mark.sha256,
		repo.DigestOf(next.Source), next.Author, next.Summary, rueidis.BinaryString(next.Source), r.channel)
	switch {
	case redislink.Reply(err) != "":
		return repo.Version{}, r.explain(err)
	case err != nil:
		return repo.Version{}, fmt.Errorf("rules: the version may or may not have been written; read the current version: %w", err)
	case len(answer) != 2:
		return repo.Version{}, errLost
	}
	if next.Number, err = numberOf(answer[0]); err != nil {
		return repo.Version{}, fmt.Errorf("rules: %w", err)
	}
	next.Time = timeOf(answer[1])
	if s.trouble != nil && len(s.raw.Source) > 0 {
		next.Replaced = new(repo.Replaced)
	}
	r.know(next.Number)
	return next, nil
}

// adopt makes a version of a document that was written to Redis by hand. Otherwise it
// would be in force, but not in the history, and a rollback to it would be impossible.
//
// That it cannot be done, as by a user who may only read, makes the document no worse.
func (r *Repository) adopt(ctx context.Context, s *state) {
	var old *ruleedit.Document
	if heads, err := r.heads(ctx); err == nil && len(heads) > 0 {
		if v, err := r.load(ctx, heads[0].Number); err == nil {
			old, _ = r.Read(v.Source)
		}
	}
	const author = "redis"
	summary := repo.Summarize(old, s.raw.Document)
	sum := repo.DigestOf(s.raw.Source)
	sha := sha1.Sum(s.raw.Source) // what Redis can compute; it need not stand an attack
	answer, err := r.exec(ctx, adoptScript,
		strconv.Itoa(repo.MaxHistory), strconv.Itoa(r.maxBytes), s.mark.number, s.mark.sha256,
		hex.EncodeToString(sha[:]), sum, author, summary, r.channel)
	if err != nil || len(answer) != 2 {
		return
	}
	number, err := numberOf(answer[0])
	if err != nil {
		return
	}
	s.mark.number, s.mark.sha256 = answer[0], sum
	s.raw.Number, s.raw.Time, s.raw.Author, s.raw.Summary = number, timeOf(answer[1]), author, summary
}
