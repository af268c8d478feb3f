package redis

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/redislink"
)

//go:embed script/*.lua
var scriptFiles embed.FS

// scriptOf puts a script together from its files.
func scriptOf(names ...string) *rueidis.Lua {
	var all strings.Builder
	for _, name := range names {
		text, err := scriptFiles.ReadFile("script/" + name + ".lua")
		if err != nil {
			panic("counter: there is no script " + name) // which every test would have found
		}
		all.Write(text)
	}
	return rueidis.NewLuaScript(all.String())
}

var (
	counterScript  = scriptOf("time", "counters")
	sequenceScript = scriptOf("time", "sequence")
	boardScript    = scriptOf("time", "ranks", "board")
	slidingScript  = scriptOf("time", "ranks", "sliding", "sliding_board")
	hotScript      = scriptOf("time", "ranks", "sliding", "hot")

	observeScript      = scriptOf("time", "distribution", "observe")
	distributionScript = scriptOf("time", "distribution", "distributions")
)

// now is what a script is told of the time: nothing, unless a test sets it.
func (s *Store) now() string {
	if s.clock == nil {
		return ""
	}
	return strconv.FormatInt(int64(s.clock()), 10)
}

// call runs a script, and returns what it has to say after "ok".
func (s *Store) call(ctx context.Context, script *rueidis.Lua, keys, args []string) ([]rueidis.RedisMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, err := s.client()
	if err != nil {
		return nil, fmt.Errorf("%w; nothing was changed: %w", counter.ErrUnavailable, err)
	}
	ours := time.Now().Add(s.timeout)
	limited, cancel := context.WithDeadline(ctx, ours)
	defer cancel()
	answer, err := script.Exec(limited, client, keys, args).ToArray()
	if err != nil {
		// The client may notice a deadline before the context does.
		theirs, ok := ctx.Deadline()
		if ctx.Err() != nil || ok && theirs.Before(ours) && errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("counter: the change may have been made: %w", cmp.Or(ctx.Err(), context.DeadlineExceeded))
		}
		return nil, s.explain(err, keys)
	}
	if len(answer) == 0 {
		return nil, errAnswer
	}
	switch word, _ := answer[0].ToString(); word {
	case "ok":
		return answer[1:], nil
	case "range":
		return nil, counter.ErrRange
	case "when":
		return answer[1:], errWhen
	}
	return nil, errAnswer
}

var errAnswer = errors.New("counter: unexpected answer from Redis; check for a proxy in between")

// errWhen is of a script that has no key for what time it is. The answer is the time.
var errWhen = errors.New("counter: the clock of Redis was set while the call was made; try again")

// explain returns an error of this package for an error of the client.
func (s *Store) explain(err error, keys []string) error {
	_, ok := rueidis.IsRedisErr(err)
	switch {
	case !ok && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: no answer within %v", counter.ErrUnavailable, s.timeout)
	case !ok:
		return fmt.Errorf("%w: %v", counter.ErrUnavailable, err)
	case redislink.Unavailable(err):
		return fmt.Errorf("%w; nothing was changed: %v", counter.ErrUnavailable, err)
	}
	return redislink.Explain("counter", fmt.Sprintf("%q or a key beside it", keys[0]), err)
}

// ask is call, to be read.
func (s *Store) ask(ctx context.Context, script *rueidis.Lua, keys, args []string) *reader {
	answer, err := s.call(ctx, script, keys, args)
	return &reader{answer, err}
}

// reader takes an answer apart. After the first thing that is not as it should be, all
// is nothing and err says so.
type reader struct {
	answer []rueidis.RedisMessage
	err    error
}

// result is what was read, and nothing with an error.
func result[T any](read []T, r *reader) ([]T, error) {
	if r.err != nil {
		return nil, r.err
	}
	return read, nil
}

func (r *reader) fail(err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%w (%v)", errAnswer, err)
	}
}

func (r *reader) list(m []rueidis.RedisMessage, i int) []rueidis.RedisMessage {
	if i >= len(m) {
		r.fail(errors.New("it is too short"))
		return nil
	}
	list, err := m[i].ToArray()
	r.fail(err)
	return list
}

func (r *reader) text(m []rueidis.RedisMessage, i int) string {
	if i >= len(m) {
		r.fail(errors.New("it is too short"))
		return ""
	}
	s, err := m[i].ToString()
	r.fail(err)
	return s
}

// number reads a whole number, which may come as text.
func (r *reader) number(m []rueidis.RedisMessage, i int) int64 {
	if i < len(m) && m[i].IsInt64() {
		n, err := m[i].AsInt64()
		r.fail(err)
		return n
	}
	return r.parse(r.text(m, i))
}

func (r *reader) parse(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if r.err == nil {
		r.fail(err)
	}
	return n
}

func timeOf(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
