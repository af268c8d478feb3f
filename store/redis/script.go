package redis

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"

	"github.com/weirhq/weir"
)

//go:generate go run ./script

//go:embed script/*.lua
var scriptFiles embed.FS

// needs is what a script has to be able to do. Redis runs all of a script at every
// call, its definitions too, so a call for token buckets should not pay for logs.
type needs uint16

const (
	needBucket needs = 1 << iota
	needFixedWindow
	needSlidingWindow
	needSlidingLog
	needSlidingBuckets
	needMany    // requests to take several ops on different keys
	needSeveral // requests of several ops, and peeks
	needBack    // refunds
	needHolds   // holds, and resets, which end their charges

	needAll      = 1<<iota - 1
	needCounters = needBucket | needFixedWindow | needSlidingWindow
	needAny      = needCounters | needSlidingLog | needSlidingBuckets
)

// form is how a script is told what to do, and where it has its numbers.
type form uint8

const (
	columns form = iota // anything at all
	singles             // requests of one op to take, reserve, settle or, of a log, to refund; all of one algorithm
)

// script is a file of script/, which is sent as it is.
type script struct {
	file string
	form form
	can  needs

	text, sha string // of the file
}

// scripts are what Redis runs. Of those that can do what a call needs it gets the first.
var scripts = []*script{
	{file: "single_bucket", form: singles, can: needBucket},
	{file: "single_fixed_window", form: singles, can: needFixedWindow},
	{file: "single_sliding_window", form: singles, can: needSlidingWindow},
	{file: "single_sliding_buckets", form: singles, can: needSlidingBuckets},
	{file: "single_sliding_log", form: singles, can: needSlidingLog | needBack},
	{file: "held_bucket", form: singles, can: needBucket | needHolds},
	{file: "held_fixed_window", form: singles, can: needFixedWindow | needHolds},
	{file: "held_sliding_window", form: singles, can: needSlidingWindow | needHolds},
	{file: "many_counters", can: needMany | needCounters},
	{file: "one_counters_log", can: needCounters | needSlidingLog},
	{file: "one_counters_buckets", can: needCounters | needSlidingBuckets},
	{file: "one_any", can: needAny},
	{file: "several_sliding_log", can: needMany | needSeveral | needSlidingLog},
	{file: "several_sliding_buckets", can: needMany | needSeveral | needSlidingBuckets},
	{file: "several_counters", can: needMany | needSeveral | needCounters},
	{file: "several_counters_log", can: needMany | needSeveral | needCounters | needSlidingLog},
	{file: "several_counters_buckets", can: needMany | needSeveral | needCounters | needSlidingBuckets},
	{file: "several_any", can: needMany | needSeveral | needAny},
	{file: "back_sliding_log", can: needMany | needSeveral | needBack | needSlidingLog},
	{file: "back_counters_log", can: needMany | needSeveral | needBack | needCounters | needSlidingLog},
	{file: "all", can: needAll &^ needHolds},
	{file: "holds", can: needAll},
}

var scriptOf [singles + 1][needAll + 1]*script

// loadScripts is called before a script is asked for.
var loadScripts = sync.OnceFunc(func() {
	for _, s := range scripts {
		s.read()
		for n := range scriptOf[s.form] {
			if scriptOf[s.form][n] == nil && needs(n)&^s.can == 0 {
				scriptOf[s.form][n] = s
			}
		}
	}
})

func (s *script) read() {
	text, err := scriptFiles.ReadFile("script/" + s.file + ".lua")
	if err != nil {
		panic(fmt.Sprintf("redis: there is no script %s", s.file)) // which a test would have found
	}
	s.set(string(text))
}

func (s *script) set(text string) {
	sum := sha1.Sum([]byte(text))
	s.text, s.sha = text, hex.EncodeToString(sum[:])
}

// Commands that run a script: one that Redis has, by its SHA-1, or one that it is sent.
const (
	evalSHA = "EVALSHA"
	eval    = "EVAL"
)

func (s *script) run(ctx context.Context, client Client, keys []string, arg string) (string, error) {
	answer, err := client.Eval(ctx, evalSHA, s.sha, keys, arg)
	if saysAny(err, "NOSCRIPT") {
		return client.Eval(ctx, eval, s.text, keys, arg)
	}
	return answer, err
}

var needOf = [...]needs{
	weir.TokenBucket: needBucket, weir.LeakyBucket: needBucket, weir.FixedWindow: needFixedWindow,
	weir.SlidingWindow: needSlidingWindow, weir.SlidingLog: needSlidingLog, weir.SlidingBuckets: needSlidingBuckets,
	weir.InFlight: needSlidingLog,
}

// needsOf returns which features a check needs. Holds that are not singles are rare, so one script
// handles them for all algorithms.
func needsOf(c *check) needs {
	n := needs(0)
	switch {
	case c.verb.holds():
		return needAll
	case c.verb == refund && len(c.ops) == 1:
		n = needBack
	case c.verb == refund || c.verb == renew:
		n = needSeveral | needBack
	case c.verb != take || len(c.ops) != 1 && !c.isPlain():
		n = needSeveral
	case len(c.ops) != 1:
		n = needMany
	}
	for i := range c.ops {
		n |= needOf[c.ops[i].Limit.Algorithm()]
	}
	return n
}

// isPlain reports whether no op of a check has to know of another, and each is charged only if
// it fits.
func (c *check) isPlain() bool {
	for i, key := range c.keys {
		if c.ops[i].Always || slices.Contains(c.keys[:i], key) {
			return false
		}
	}
	return true
}
