package respapi

import (
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/redis"
)

func integers(all ...int64) []any {
	out := make([]any, len(all))
	for i, n := range all {
		out[i] = n
	}
	return out
}

// The cases of redis-cell's own test: 5 at once, one per second. It compares durations, which
// are in whole seconds here, rounded up.
func TestThrottleCases(t *testing.T) {
	s := newStand(t, Options{})
	c := s.dial(t)
	now := time.Duration(0)
	for i, step := range []struct {
		at                                    time.Duration
		volume                                int64
		limited, remaining, retry, resetAfter int64
	}{
		{0, 6, 1, 5, -1, 0}, // more than the maximum
		{0, 1, 0, 4, -1, 1},
		{0, 1, 0, 3, -1, 2},
		{0, 1, 0, 2, -1, 3},
		{0, 1, 0, 1, -1, 4},
		{0, 1, 0, 0, -1, 5},
		{0, 1, 1, 0, 1, 5},
		{0, 0, 0, 0, -1, 5}, // nothing is never limited
		{3000, 1, 0, 2, -1, 3},
		{3100, 1, 0, 1, -1, 4},
		{4000, 1, 0, 1, -1, 4},
		{8000, 1, 0, 4, -1, 1},
		{9500, 1, 0, 4, -1, 1},
		{9500, 0, 0, 4, -1, 1},
		{9500, 2, 0, 2, -1, 3},
		{9500, 5, 1, 2, 3, 3},
	} {
		at := step.at * time.Millisecond
		s.move(at - now)
		now = at
		got := c.do(fmt.Sprintf("CL.THROTTLE foo 4 1 1 %d", step.volume))
		if want := integers(step.limited, 5, step.remaining, step.retry, step.resetAfter); !reflect.DeepEqual(got, want) {
			t.Errorf("case %d: got %v, want %v", i, got, want)
		}
	}
}

// cell is the arithmetic of redis-cell, from its source, with one key.
type cell struct{ tat int64 } // nanoseconds; 0 if there is no key

func (c *cell) throttle(now, burst, count, period, quantity int64) []any {
	emission := int64(float64(period*1e9) / float64(count))
	tolerance, increment := emission*(burst+1), emission*quantity
	tat := c.tat
	if tat <= now { // the key has expired
		tat = now
	}
	next := tat + increment
	limited, retry, ttl := int64(0), int64(-1e9), next-now
	if diff := now - (next - tolerance); diff < 0 {
		limited, ttl = 1, tat-now
		if increment <= tolerance {
			retry = -diff
		}
	} else {
		c.tat = next
	}
	remaining := int64(0)
	if left := tolerance - ttl; left > -emission {
		remaining = int64(float64(left/1000) / float64(emission/1000))
	}
	up := func(ns int64) int64 {
		n := ns / 1e9
		if ns%1e9/1e6 > 0 {
			n++
		}
		return n
	}
	return integers(limited, burst+1, remaining, up(retry), up(ttl))
}

// Answers are those of redis-cell at any time, for rates whose interval is a whole number of
// microseconds: redis-cell drops what is less.
func TestThrottleLikeRedisCell(t *testing.T) {
	s := newStand(t, Options{})
	c := s.dial(t)
	keys := 0
	limited := 0
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.SampledFrom([]int64{1, 2, 4, 5, 8, 10, 16, 20, 25, 30, 50, 60, 100, 1000}).Draw(t, "count")
		period := rapid.SampledFrom([]int64{3, 6, 60, 3600, 86400}).Draw(t, "period")
		burst := rapid.Int64Range(0, 30).Draw(t, "burst")
		keys++
		var oracle cell
		for range rapid.IntRange(1, 40).Draw(t, "commands") {
			s.move(time.Duration(rapid.Int64Range(0, period*300_000).Draw(t, "µs")) * time.Microsecond)
			quantity := rapid.SampledFrom([]int64{0, 1, 1, 1, 2, 5, 31}).Draw(t, "quantity")
			got := c.do(fmt.Sprintf("cl.throttle k%d %d %d %d %d", keys, burst, count, period, quantity))
			want := oracle.throttle(s.now.Load()*1000, burst, count, period, quantity)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("got %v, want %v", got, want)
			}
			if want[0] == int64(1) {
				limited++
			}
		}
	})
	if limited == 0 {
		t.Error("nothing was limited")
	}
}

func TestThrottleErrors(t *testing.T) {
	s := newStand(t, Options{})
	c := s.dial(t)
	const usage = "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
	for command, want := range map[string]string{
		"CL.THROTTLE":                                         usage,
		"CL.THROTTLE a 1 2":                                   usage,
		"CL.THROTTLE a 1 2 3 4 5":                             usage,
		"CL.THROTTLE a b 2 3":                                 "Cell error: Store error: Couldn't parse as integer: b",
		"CL.THROTTLE a 1 9223372036854775808 3":               "Cell error: Store error: Couldn't parse as integer: 9223372036854775808",
		"CL.THROTTLE a 1 0 3":                                 "Cell error: Store error: Zero rates are not supported",
		"CL.THROTTLE a 1 2 0":                                 "Cell error: Store error: Zero rates are not supported",
		"CL.THROTTLE a -1 2 3":                                "Cell error: Store error: max_burst: -1 is out of range; send 0 to 1125899906842623.",
		"CL.THROTTLE a 1 -2 3":                                "Cell error: Store error: count: -2 is out of range; send 1 to 1125899906842624.",
		"CL.THROTTLE a 1 2 9223372036854775807":               "Cell error: Store error: period: 9223372036854775807 is out of range; send 1 to 315360000.",
		"CL.THROTTLE a 1 2 3 -1":                              "Cell error: Store error: quantity: -1 is negative, and a check cannot refund; send at least 0.",
		"CL.THROTTLE " + strings.Repeat("a", 1025) + " 1 2 3": "Cell error: Store error: key: it has 1025 bytes, at most 1024 are allowed; hash long identities first.",
		"CL.THROTTLE \xff 1 2 3":                              "Cell error: Store error: key: it is not UTF-8; encode it, for example in hexadecimal.",
	} {
		if got := c.do(command); got != failure(want) {
			t.Errorf("%.60q: got %q, want %q", command, got, want)
		}
	}
	c.send(array("CL.THROTTLE", "", "1", "2", "3"))
	if got, ok := c.read().(failure); !ok || !strings.Contains(string(got), "it is empty") {
		t.Errorf("an empty key: %v", got)
	}
}

// A limit of a command shares nothing with a rule, even if they have the same key and period,
// nor with one of another period.
func TestThrottleKeys(t *testing.T) {
	s := newStand(t, Options{})
	c := s.dial(t)
	for range 3 {
		c.do("CL.THROTTLE user:alice 99 100 60 30")
	}
	answer := c.do("WEIR.PEEK path /api/x user alice").([]any)
	if answer[4] != "rule" || answer[5] != "api" || answer[9] != int64(100) {
		t.Errorf("the rule: %v", answer)
	}
	if got := c.do("CL.THROTTLE user:alice 99 100 60 0"); !reflect.DeepEqual(got, integers(0, 100, 10, -1, 54)) {
		t.Errorf("the same limit: %v", got)
	}
	if got := c.do("CL.THROTTLE user:alice 199 200 60 0"); !reflect.DeepEqual(got, integers(0, 200, 110, -1, 54)) {
		t.Errorf("a higher limit keeps what was used: %v", got)
	}
	if got := c.do("CL.THROTTLE user:alice 99 100 61 0"); !reflect.DeepEqual(got, integers(0, 100, 100, -1, 0)) {
		t.Errorf("another period: %v", got)
	}
}

// More limits than are kept are no trouble.
func TestManyLimits(t *testing.T) {
	var all limits
	for i := range int64(3 * maxLimits) {
		if _, err := all.get(terms{1, 1 + i, 1}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(all.known); n > maxLimits {
		t.Errorf("%d limits are kept", n)
	}
}

// Instances that share a Redis share the limits of commands, which are under a name of their
// own there.
func TestThrottleInRedis(t *testing.T) {
	server := testredis.Start(t)
	var lines []*line
	for range 2 {
		store, err := redis.Open("redis://" + server.Addr + "?timeout=10s") // the machine may be busy
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		e, err := engine.New(engine.Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		o := Options{}
		o.Engine = e
		lines = append(lines, newStand(t, o).dial(t))
	}
	for i, want := range []int64{0, 0, 1, 1} {
		answer := lines[i%2].do("CL.THROTTLE user123 1 1 86400").([]any)
		if answer[0] != want || answer[1] != int64(2) {
			t.Errorf("command %d: %v", i+1, answer)
		}
	}
	if keys := server.Do("KEYS", "*@resp*"); !strings.Contains(keys, "user123") {
		t.Errorf("the keys are %q", keys)
	}
}

// counting is told of every decision.
type counting struct{ denied, allowed atomic.Int64 }

func (c *counting) Observe(_ *rule.Request, v *engine.Verdict, _ time.Duration) {
	if v.Allowed {
		c.allowed.Add(1)
	} else {
		c.denied.Add(1)
	}
}

// Statistics see what is asked for, and not a look: it would be a denial when nothing is left.
func TestThrottleIsSeen(t *testing.T) {
	var seen counting
	e, err := engine.New(engine.Options{Observers: []engine.Observer{&seen}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	o := Options{}
	o.Engine = e
	c := newStand(t, o).dial(t)
	for _, quantity := range []string{"1", "0", "1", "0"} {
		c.do("CL.THROTTLE k 0 1 86400 " + quantity)
	}
	if seen.allowed.Load() != 1 || seen.denied.Load() != 1 {
		t.Errorf("%d allowed, %d denied", seen.allowed.Load(), seen.denied.Load())
	}
}

// Numbers that were read for one command are not those of another that only looks like it.
func TestNumbersAreReadAgain(t *testing.T) {
	s := newStand(t, Options{})
	for command, want := range map[string][4]int64{
		array("CL.THROTTLE", "k", "7", "6", "60"):            {7, 6, 60, 1},
		array("CL.THROTTLE", "k", "7", "6", "60", "2"):       {7, 6, 60, 2},
		array("CL.THROTTLE", "k", "7", "6", "61", "2"):       {7, 6, 61, 2},
		array("CL.THROTTLE", "k", "7\r\n$1\r\n6", "60", "2"): {}, // the same bytes, and no number
	} {
		w := ready(t, s, "CL.THROTTLE k 7 6 60 2")
		if got, err := w.wanted(6); err != nil || got != [4]int64{7, 6, 60, 2} {
			t.Fatalf("%v, %v", got, err)
		}
		w.r = reader{buf: []byte(command), end: len(command)}
		if found, err := w.r.next(); !found || err != nil {
			t.Fatal(found, err)
		}
		if got, err := w.wanted(len(w.r.args)); (err == nil) != (want != [4]int64{}) || err == nil && got != want {
			t.Errorf("%q: %v, %v", command, got, err)
		}
	}
}
