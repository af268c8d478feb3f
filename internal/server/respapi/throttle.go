package respapi

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/rule"
)

// counterName keeps the usage apart from that of rules: no id of a rule has an @.
const counterName = "@resp"

// throttleRule is the rule under which observers see CL.THROTTLE. While the store is
// unavailable, this process goes on limiting by itself: an answer needs numbers.
var throttleRule = &rule.Entry{Rule: &rule.Rule{ID: "resp:cl.throttle", OnFailure: rule.Local}}

// Rules are those under which the engine's observers are told of commands that bring their
// own limits.
func Rules() []*rule.Entry { return []*rule.Entry{throttleRule} }

// cellError is how errors of redis-cell begin. They are its own texts, where it has one.
func cellError(text string) error { return &redisError{"Cell", "error: Store error: " + text} }

// throttle answers CL.THROTTLE key max_burst count_per_period period [quantity].
func (w *work) throttle() error {
	if err := w.mayUse(); err != nil {
		return err
	}
	n := len(w.r.args)
	if n != 5 && n != 6 {
		return cellError("Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]")
	}
	numbers, err := w.wanted(n)
	if err != nil {
		return err
	}
	key, quantity := w.r.arg(1), numbers[3]
	limit, err := w.described(terms{numbers[0], numbers[1], numbers[2]})
	switch {
	case err == errZeroRate:
		return cellError("Zero rates are not supported")
	case err != nil:
		return cellError(manage.Sentence(err))
	case quantity < 0:
		return cellError(fmt.Sprintf("quantity: %d is negative, and a check cannot refund; send at least 0.", quantity))
	case !utf8.Valid(key):
		return cellError("key: it is not UTF-8; encode it, for example in hexadecimal.")
	}
	w.limits[0] = limit
	// The store and the observers keep no part of the key.
	w.demand[0] = engine.Demand{Rule: throttleRule, Key: unsafe.String(unsafe.SliceData(key), len(key)), Limits: w.limits[:], Cost: quantity}
	if quantity == 0 {
		err = w.server.options.Engine.PeekDemand(w.server.ctx, w.demand[:], &w.verdict)
	} else {
		w.follow()
		err = w.server.options.Engine.Demand(w.server.ctx, w.demand[:], &w.verdict)
	}
	if err != nil {
		if _, ok := errors.AsType[*weir.InvalidError](err); ok {
			return cellError(manage.Sentence(err))
		}
		return err
	}
	w.tell(&w.verdict.Results[0].Decision, numbers[0], quantity)
	return nil
}

// follow spares the engine a reading of the clock.
func (w *work) follow() {
	if w.follows {
		w.verdict.Follow()
	}
}

// wanted reads the arguments behind the key, which are mostly those of the command before.
func (w *work) wanted(n int) (numbers [4]int64, err error) {
	text := w.r.buf[w.r.start+int(w.r.args[2].from) : w.r.start+int(w.r.args[n-1].to)] // with what is between them
	if n == w.before.args && bytes.Equal(text, w.before.text) {
		return w.before.numbers, nil
	}
	numbers[3] = 1
	for i := 2; i < n; i++ {
		var ok bool
		if numbers[i-2], ok = integer(w.r.arg(i)); !ok {
			return numbers, cellError("Couldn't parse as integer: " + string(w.r.arg(i)))
		}
	}
	if len(text) <= maxNumbers {
		w.before = numbersRead{n, append(w.before.text[:0], text...), numbers}
	}
	return numbers, nil
}

// numbersRead are those of the last limit: of how many arguments, as they were sent, and what
// they are.
type numbersRead struct {
	args    int
	text    []byte
	numbers [4]int64
}

// maxNumbers is how many bytes of numbers a connection remembers.
const maxNumbers = 96

// described is the limit of some terms, which are mostly those of the command before.
func (c *conn) described(t terms) (*weir.Compiled, error) {
	if c.limit == nil || c.terms != t {
		limit, err := c.server.limits.get(t)
		if err != nil {
			return nil, err
		}
		c.limit, c.terms = limit, t
	}
	return c.limit, nil
}

// tell writes a decision as redis-cell does. Nothing is never limited.
func (w *work) tell(d *weir.Decision, burst, quantity int64) {
	limited, retry := int64(0), int64(-1)
	if !d.Allowed && quantity > 0 {
		limited = 1
		if d.RetryAfter != weir.Never {
			retry = seconds(d.RetryAfter)
		}
	}
	w.array(5)
	w.integer(limited)
	w.integer(burst + 1)
	w.integer(d.Remaining)
	w.integer(retry)
	w.integer(seconds(d.ResetAfter))
}

// seconds rounds as redis-cell does: up, after less than a millisecond was dropped.
func seconds(d time.Duration) int64 {
	return int64((d.Truncate(time.Millisecond) + time.Second - 1) / time.Second)
}

// terms are the limit that a command describes.
type terms struct{ burst, count, period int64 }

// limits are those that commands have described, compiled. The zero value is ready to use.
type limits struct {
	mu    sync.RWMutex
	known map[terms]*weir.Compiled
}

// maxLimits is how many are known. Applications have a few; when they have more, all are
// compiled again, which takes a microsecond each.
const maxLimits = 1 << 12

func (l *limits) get(t terms) (*weir.Compiled, error) {
	l.mu.RLock()
	c := l.known[t]
	l.mu.RUnlock()
	if c != nil {
		return c, nil
	}
	c, err := t.compile()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= maxLimits {
		l.known = map[terms]*weir.Compiled{}
	}
	l.known[t] = c
	return c, nil
}

var errZeroRate = errors.New("zero rates are not supported")

// compile makes a token bucket of the terms: GCRA is one, told in other words.
func (t terms) compile() (*weir.Compiled, error) {
	switch {
	case t.count == 0 || t.period == 0:
		return nil, errZeroRate
	case t.burst < 0 || t.burst >= weir.MaxUnits:
		return nil, fmt.Errorf("max_burst: %d is out of range; send 0 to %d", t.burst, int64(weir.MaxUnits-1))
	case t.count < 0 || t.count > weir.MaxUnits:
		return nil, fmt.Errorf("count: %d is out of range; send 1 to %d", t.count, int64(weir.MaxUnits))
	case t.period < 0 || t.period > int64(weir.MaxPeriod/time.Second):
		return nil, fmt.Errorf("period: %d is out of range; send 1 to %d", t.period, int64(weir.MaxPeriod/time.Second))
	}
	return weir.Limit{Name: counterName, N: t.count, Burst: t.burst + 1, Period: time.Duration(t.period) * time.Second}.Compile()
}
