package redis

import (
	"context"
	"embed"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/redislink"
)

//go:embed script/*.lua
var scriptFiles embed.FS

func scriptOf(names ...string) *rueidis.Lua { return redislink.Script(scriptFiles, names...) }

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
	return itoa(int64(s.clock()))
}

// call runs a script, and reads the word with which it answers.
func (s *Store) call(ctx context.Context, script *rueidis.Lua, keys, args []string) *redislink.Answer {
	answer := s.conn.Run(ctx, script, keys, args)
	switch answer.Text() {
	case "ok":
	case "range":
		answer.Fail(counter.ErrRange)
	case "when":
		answer.Fail(errWhen)
	default:
		answer.Must(false)
	}
	return answer
}

// errWhen is of a script that has no key for what time it is. The answer is the time.
var errWhen = errors.New("counter: the clock of Redis was set while the call was made; try again")

func amount(a *redislink.Answer) counter.Amount { return counter.Amount(a.Int()) }

func timeOf(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
