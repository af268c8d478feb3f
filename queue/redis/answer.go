package redis

import (
	"cmp"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/queue"
)

// errAnswer is an answer that none of our scripts gives.
var errAnswer = errors.New("redis: unexpected answer from a script; check for a proxy in between")

// answer is read part by part. That there is none, or what is not there makes it bad, is
// asked at the end.
type answer struct {
	parts  []rueidis.RedisMessage
	bad    bool
	failed error // why there is no answer
}

// result is what was read, and nothing with an error.
func result[T any](read T, a *answer) (T, error) {
	if err := a.err(); err != nil {
		var nothing T
		return nothing, err
	}
	return read, nil
}

func (a *answer) next() *rueidis.RedisMessage {
	if len(a.parts) == 0 {
		a.bad = true
		return &rueidis.RedisMessage{}
	}
	p := &a.parts[0]
	a.parts = a.parts[1:]
	return p
}

// read takes the next part for what it should be.
func read[T any](a *answer, as func(*rueidis.RedisMessage) (T, error)) T {
	x, err := as(a.next())
	a.bad = a.bad || err != nil
	return x
}

func (a *answer) word() string        { return read(a, (*rueidis.RedisMessage).ToString) }
func (a *answer) bytes() []byte       { return read(a, (*rueidis.RedisMessage).AsBytes) }
func (a *answer) number() int64       { return read(a, (*rueidis.RedisMessage).AsInt64) }
func (a *answer) micros() weir.Micros { return weir.Micros(a.number()) }

func (a *answer) slot(t *queue.Terms) queue.Pace {
	return queue.Pace{Next: a.micros(), Part: a.number(), Rate: t.Rate}
}

// list returns the answers within the next part.
func (a *answer) list() []*answer {
	return listOf(read(a, (*rueidis.RedisMessage).ToArray), &a.bad)
}

func listOf(parts []rueidis.RedisMessage, bad *bool) []*answer {
	var all []*answer
	for i := range parts {
		inner, err := parts[i].ToArray()
		*bad = *bad || err != nil
		all = append(all, &answer{parts: inner})
	}
	return all
}

func (a *answer) err() error {
	if a.bad {
		return cmp.Or(a.failed, errAnswer)
	}
	return a.failed
}

func micros(m weir.Micros) time.Duration { return time.Duration(m) * time.Microsecond }

func (a *answer) lease(secret string, now weir.Micros) queue.Lease {
	l := queue.Lease{
		Number: a.number(), ID: a.word(), Payload: a.bytes(), Tries: int(a.number()), Pushed: a.micros(),
		Release: a.micros(), Expires: a.micros(),
	}
	l.Token, l.Delay = queue.Token(l.Number, secret), micros(l.Release-now)
	return l
}

func (a *answer) letter() queue.DeadLetter {
	return queue.DeadLetter{
		Number: a.number(), ID: a.word(), Payload: a.bytes(), Tries: int(a.number()), Pushed: a.micros(),
		Died: a.micros(), Reason: a.word(),
	}
}
