package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/rule"
)

// state is what is in Redis.
type state struct {
	mark    mark
	raw     repo.Version  // what is current there, usable or not
	byHand  bool          // somebody has put it there who did not say who
	version *repo.Version // in force; nil if none can be used, which is trouble
	trouble error         // why the current document is not it
}

// mark tells states apart. A number alone would not: a Redis that has lost a version
// may have another of the same number, and somebody may have forgotten to count on. It
// is as Redis has it, whatever that is.
type mark struct{ number, sha256, size string }

// look reads what is current, and finds a version that can be used.
func (r *Repository) look(ctx context.Context) (*state, error) {
	s, err := r.readState(ctx, mark{number: "unknown"})
	if err != nil {
		return nil, err
	}
	return s, r.judge(ctx, s)
}

// readState returns what is current, or nil if that is what is known.
func (r *Repository) readState(ctx context.Context, known mark) (*state, error) {
	texts, err := r.exec(ctx, readScript, known.number, known.sha256, known.size, strconv.Itoa(rule.MaxDocument))
	if err != nil {
		return nil, r.explain(err)
	}
	if len(texts) == 0 {
		return nil, nil
	}
	const number, at, author, summary, sum, size, source = 0, 1, 2, 3, 4, 5, 6
	s := &state{mark: mark{texts[number], texts[sum], texts[size]}}
	if texts[number] == "" && texts[size] == "0" {
		return s, nil
	}
	s.raw = repo.Version{Author: texts[author], Summary: texts[summary], Time: timeOf(texts[at]), Source: []byte(texts[source])}
	if s.raw.Number, err = numberOf(texts[number]); err != nil {
		s.trouble = fmt.Errorf("rules: the key %s: %w", r.keys[0], err)
	}
	if n, err := strconv.Atoi(texts[size]); err != nil || n > rule.MaxDocument {
		s.trouble = fmt.Errorf("rules: the document in %s has %s bytes, at most %d are read; write less, or split it", r.keys[0], texts[size], rule.MaxDocument)
	}
	if repo.DigestOf(s.raw.Source) != s.mark.sha256 {
		// Then the rest is not about it, either.
		s.byHand = true
		s.raw.Author, s.raw.Summary, s.raw.Time = "redis", "", time.Time{}
	}
	return s, nil
}

// judge finds the version that is in force.
func (r *Repository) judge(ctx context.Context, s *state) error {
	if s.trouble == nil && s.raw.Number > 0 {
		if s.raw.Document, s.trouble = r.Usable(s.raw.Source); s.trouble == nil {
			s.version = &s.raw
			if s.byHand {
				r.adopt(ctx, s)
			}
			return nil
		}
		s.trouble = fmt.Errorf("rules: version %d in Redis cannot be used: %w", s.raw.Number, s.trouble)
	}
	heads, err := r.heads(ctx)
	if err != nil {
		return err
	}
	if s.trouble == nil && len(heads) > 0 {
		// There was none a moment ago: either it is lost, or it is the first one, which
		// came in between.
		if again, err := r.readState(ctx, s.mark); err != nil || again != nil {
			if err == nil {
				*s = *again
				err = r.judge(ctx, s)
			}
			return err
		}
	}
	for _, head := range heads {
		v, err := r.load(ctx, head.Number)
		if errors.Is(err, repo.ErrNoVersion) {
			continue // it has just become too old, or somebody has removed it
		}
		if err != nil {
			return err
		}
		if v.Document, err = r.Usable(v.Source); err != nil {
			continue
		}
		s.version = &v
		if s.trouble == nil {
			s.trouble = fmt.Errorf("rules: the key %s no longer exists, so version %d of the history is used; write the rules again", r.keys[0], v.Number)
		}
		return nil
	}
	if s.trouble != nil {
		return nil
	}
	s.version = new(repo.Version) // nothing was written yet
	s.version.Document, err = r.Read(nil)
	return err
}

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
	err := r.Do(ctx, func(ctx context.Context, c rueidis.Client) (err error) {
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
	err := r.Do(ctx, func(ctx context.Context, c rueidis.Client) (err error) {
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
