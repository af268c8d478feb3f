package redis

import (
	"embed"
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
)

//go:embed script/*.lua
var scriptFiles embed.FS

// needs is what a script has to be able to do. Redis runs all of a script at every
// call, its definitions too, so a call for token buckets should not pay for logs.
type needs uint8

const (
	needBucket needs = 1 << iota
	needFixedWindow
	needSlidingWindow
	needSlidingLog
	needSlidingBuckets
	needSeveral // requests of several ops, and peeks
	needBack    // refunds and resets

	needAll        = 1<<iota - 1
	needAlgorithms = needBucket | needFixedWindow | needSlidingWindow | needSlidingLog | needSlidingBuckets
)

// parts are the files that a script is made of, in order, and what needs them: any of
// it, or always if it says nothing.
var parts = []struct {
	file       string
	needed     needs
	algorithms []weir.Algorithm // that it is the arithmetic of
	form       form             // of scripts that it is in
}{
	{file: "10_integers"},
	{file: "11_wide", needed: needBucket | needSlidingWindow},
	{file: "20_standing"},
	{file: "21_columns", form: columns},
	{file: "22_tail", needed: needSlidingBuckets},
	{file: "23_log", needed: needSlidingLog},
	{file: "24_pages", needed: needSlidingLog},
	{file: "25_single", form: singles},
	{file: "30_bucket", needed: needBucket, algorithms: []weir.Algorithm{weir.TokenBucket, weir.LeakyBucket}},
	{file: "31_fixed_window", needed: needFixedWindow, algorithms: []weir.Algorithm{weir.FixedWindow}},
	{file: "32_sliding_window", needed: needSlidingWindow, algorithms: []weir.Algorithm{weir.SlidingWindow}},
	{file: "33_sliding_log", needed: needSlidingLog, algorithms: []weir.Algorithm{weir.SlidingLog}},
	{file: "34_sliding_buckets", needed: needSlidingBuckets, algorithms: []weir.Algorithm{weir.SlidingBuckets}},
	{file: "40_decide"},
	{file: "50_settle", needed: needSeveral},
	{file: "60_forget", needed: needBack},
	{file: "61_refund", needed: needBack},
	{file: "70_several", needed: needSeveral},
	{file: "90_main", form: columns},
	{file: "95_single", form: singles},
}

// form is how a script is told what to do, and where it has its numbers.
type form uint8

const (
	anyForm form = iota
	columns      // anything at all
	singles      // requests of one op to take, all of one algorithm that has no tail
)

var needOf = [...]needs{
	weir.TokenBucket: needBucket, weir.LeakyBucket: needBucket, weir.FixedWindow: needFixedWindow,
	weir.SlidingWindow: needSlidingWindow, weir.SlidingLog: needSlidingLog, weir.SlidingBuckets: needSlidingBuckets,
}

// needsOf is what a check needs. Whoever gives back may do it for any algorithm: it is
// seldom, and one script is enough.
func needsOf(c *check) needs {
	if c.verb == refund || c.verb == reset {
		return needAll
	}
	n := needs(0)
	if c.verb != take || len(c.ops) != 1 {
		n = needSeveral
	}
	for i := range c.ops {
		n |= needOf[c.ops[i].Limit.Algorithm()]
	}
	return n
}

var scripts [singles + 1][needAll + 1]atomic.Pointer[rueidis.Lua]

// scriptFor returns the script that is able to do n, made when it is first needed.
func scriptFor(f form, n needs) *rueidis.Lua {
	script := &scripts[f][n]
	if s := script.Load(); s != nil {
		return s
	}
	script.CompareAndSwap(nil, rueidis.NewLuaScript(scriptText(f, n)))
	return script.Load()
}

func scriptText(f form, n needs) string {
	a := assembly{
		form:   f,
		blocks: map[string]string{},
		// What has one place where it is used is put there. Elsewhere it is called.
		inlineSteps:     n&needSeveral == 0,
		inlineAlgorithm: bits.OnesCount8(uint8(n&needAlgorithms)) == 1,
	}
	for _, p := range parts {
		if p.needed != 0 && p.needed&n == 0 || p.form != anyForm && p.form != f {
			continue
		}
		text, err := scriptFiles.ReadFile("script/" + p.file + ".lua")
		if err != nil {
			panic(fmt.Sprintf("redis: a script has no part %s", p.file)) // which a test would have found
		}
		a.add(string(text), p.algorithms)
	}
	return a.out.String()
}
