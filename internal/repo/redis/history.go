package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/weirhq/weir/internal/repo"
)

// head is how the history describes a version.
type head struct {
	Time    string `json:"time"` // of microseconds: Lua would round a number
	Author  string `json:"author"`
	Summary string `json:"summary"`
}

func decodeHead(number string, text []byte) (repo.Version, error) {
	n, err := numberOf(number)
	if err != nil {
		return repo.Version{}, err
	}
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return repo.Version{}, fmt.Errorf("the description of version %d is not JSON; remove it: %w", n, err)
	}
	return repo.Version{Number: n, Time: timeOf(h.Time), Author: h.Author, Summary: h.Summary}, nil
}

// heads returns the versions of the history, latest first. Versions that cannot be read
// are omitted, because they cannot be restored.
func (r *Repository) heads(ctx context.Context) ([]repo.Version, error) {
	var fields map[string]string
	err := r.ask(ctx, func(ctx context.Context, c rueidis.Client) (err error) {
		fields, err = c.Do(ctx, c.B().Hgetall().Key(r.keys[1]).Build()).AsStrMap()
		return err
	})
	if err != nil {
		return nil, r.explain(err)
	}
	var versions []repo.Version
	for number, text := range fields {
		if v, err := decodeHead(number, []byte(text)); err == nil {
			versions = append(versions, v)
		}
	}
	slices.SortFunc(versions, func(a, b repo.Version) int { return cmp.Compare(b.Number, a.Number) })
	return versions, nil
}

// load reads an older version.
func (r *Repository) load(ctx context.Context, number int64) (repo.Version, error) {
	field := strconv.FormatInt(number, 10)
	var head, source []byte
	err := r.ask(ctx, func(ctx context.Context, c rueidis.Client) (err error) {
		answers := c.DoMulti(ctx, c.B().Hget().Key(r.keys[1]).Field(field).Build(), c.B().Hget().Key(r.keys[2]).Field(field).Build())
		if head, err = answers[0].AsBytes(); err == nil {
			source, err = answers[1].AsBytes()
		}
		return err
	})
	switch {
	case rueidis.IsRedisNil(err):
		return repo.Version{}, repo.ErrNoVersion
	case err != nil:
		return repo.Version{}, r.explain(err)
	}
	v, err := decodeHead(field, head)
	if err != nil {
		return repo.Version{}, fmt.Errorf("rules: the key %s: %w", r.keys[1], err)
	}
	v.Source = source
	return v, nil
}

// numberOf reads the number of a version, which Lua must be able to count on from.
func numberOf(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > 1e15 || strings.HasPrefix(text, "+") {
		return 0, fmt.Errorf("%.40q is not a version; write a number from 1", text)
	}
	return n, nil
}

// timeOf is the zero time if there is none.
func timeOf(micros string) time.Time {
	n, err := strconv.ParseInt(micros, 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}
