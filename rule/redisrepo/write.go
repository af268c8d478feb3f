package redisrepo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/rule"
)

//go:embed write.lua
var writeText string

var writeScript = rueidis.NewLuaScript(commonText + writeText)

// Write implements rule.Repository. An error of the network leaves open whether it was
// written: nothing is sent twice, for the second would be a conflict with the first.
func (r *Repository) Write(ctx context.Context, d rule.Draft) (rule.Version, error) {
	ready := false
	for range 10 {
		s, err := r.look(ctx)
		if err != nil {
			return rule.Version{}, err
		}
		var current rule.Version
		if s.version != nil {
			current = *s.version
		}
		if d.Base != current.Number {
			return rule.Version{}, &rule.ConflictError{Base: d.Base, Current: current}
		}
		if !ready {
			if d, err = d.Ready("", current.Source); err != nil {
				return rule.Version{}, err
			}
			ready = true
			r.remember(digestOf(d.Source), nil)
		}
		v, err := r.swap(ctx, s, d)
		if !errors.Is(err, errLost) {
			return v, err
		}
	}
	return rule.Version{}, errLost
}

// errLost is a race that was lost.
var errLost = errors.New("redisrepo: the keys are changed by others all the time; try again later")

// swap writes the draft if the state is still as it was.
func (r *Repository) swap(ctx context.Context, s *state, d rule.Draft) (rule.Version, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	answer, err := writeScript.Exec(ctx, r.client, r.keys, []string{
		strconv.Itoa(rule.MaxHistory), strconv.Itoa(r.maxBytes), s.mark.number, s.mark.sha256,
		digestOf(d.Source).String(), d.Author, d.Summary, rueidis.BinaryString(d.Source), r.channel,
	}).AsStrSlice()
	switch {
	case replyOf(err) != nil:
		return rule.Version{}, r.explain(err)
	case err != nil:
		return rule.Version{}, fmt.Errorf("redisrepo: it is not known whether the version was written; look at the current one: %w", err)
	case len(answer) != 2:
		return rule.Version{}, errLost
	}
	number, err := numberOf(answer[0])
	if err != nil {
		return rule.Version{}, fmt.Errorf("redisrepo: %w", err)
	}
	r.know(number)
	return rule.Version{Number: number, Time: timeOf(answer[1]), Author: d.Author, Summary: d.Summary, Source: d.Source}, nil
}
