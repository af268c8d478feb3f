package redis

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/weirhq/weir"
)

// The store's Lua is lua/*.lua, as Redis runs it: all of it as a library of functions, whose definitions
// Redis runs once, or, where there are no functions, the files that a call needs as a script.

//go:embed lua/*.lua
var luaFiles embed.FS

// needs is what a script has to be able to do. Redis runs all of a script at every call, its definitions
// too, so a call for token buckets should not pay for logs.
type needs uint16

const (
	needBucket needs = 1 << iota
	needFixedWindow
	needSlidingWindow
	needSubWindows
	needLog
	needSingles
	needRequests
	needHolds
	needHeld
	needPlace
	onlyFunctions // no script

	needAll = 1<<iota - 1
)

// files are those of the library, in their order, and for which needs a script has them.
var files = []struct {
	name string
	use  needs
}{
	{"names", needAll},
	{"hold_names", needHolds | needHeld},
	{"numbers", needHolds | needHeld},
	{"division", needBucket | needSlidingWindow},
	{"state", needAll},
	{"limits", onlyFunctions},
	{"bucket", needBucket},
	{"windows", needFixedWindow | needSlidingWindow},
	{"fixed_window", needFixedWindow},
	{"sliding_window", needSlidingWindow},
	{"sub_windows", needSubWindows},
	{"log", needLog},
	{"pages", needLog},
	{"sliding_log", needLog},
	{"decide", needAll},
	{"place", needPlace | needHolds},
	{"singles", needSingles},
	{"requests", needRequests | needHolds},
	{"hold_list", needHolds | needHeld},
	{"reserved", needHolds | needHeld},
	{"many_holds", needHolds},
	{"leases", needHolds},
	{"holds", needHolds},
	{"held", needHeld},
}

// lastNames is the file behind which a script has a function around the others. That takes less time; see
// lua/names.lua.
const lastNames = "hold_names"

// entry is a function that a store calls: any requests, such with holds, or requests of one op, which are
// quicker, of an algorithm, without holds or with them.
type entry uint8

const (
	anyRequests entry = iota
	anyHolds
	bucketSingles
	fixedWindowSingles
	slidingWindowSingles
	logSingles
	subWindowSingles
	bucketHeld
	fixedWindowHeld
	slidingWindowHeld
	logHeld
	subWindowHeld
	bucketMoved
	fixedWindowMoved
	slidingWindowMoved
	logMoved
	subWindowMoved
	nothing // tells whether the library is loaded
)

// entries are what they are called, what they do with keys and arguments, and what they need beside the
// algorithms of the call.
var entries = [...]struct {
	name, does string
	needs      needs
}{
	anyRequests:          {"requests", "requests(%s)", needRequests},
	anyHolds:             {"holds", "holds(%s)", needHolds},
	bucketSingles:        {"bucket", "singles(BUCKET, %s)", needSingles},
	fixedWindowSingles:   {"fixed_window", "singles(FIXED_WINDOW, %s)", needSingles},
	slidingWindowSingles: {"sliding_window", "singles(SLIDING_WINDOW, %s)", needSingles},
	logSingles:           {"log", "singles(LOG, %s)", needSingles},
	subWindowSingles:     {"sub_windows", "singles(SUB_WINDOWS, %s)", needSingles},
	bucketHeld:           {"held_bucket", "held(BUCKET, %s)", needHeld},
	fixedWindowHeld:      {"held_fixed_window", "held(FIXED_WINDOW, %s)", needHeld},
	slidingWindowHeld:    {"held_sliding_window", "held(SLIDING_WINDOW, %s)", needHeld},
	logHeld:              {"held_log", "held(LOG, %s)", needHeld},
	subWindowHeld:        {"held_sub_windows", "held(SUB_WINDOWS, %s)", needHeld},
	bucketMoved:          {"moved_bucket", "singles(BUCKET, %s, readApart)", needSingles | needPlace},
	fixedWindowMoved:     {"moved_fixed_window", "singles(FIXED_WINDOW, %s, readApart)", needSingles | needPlace},
	slidingWindowMoved:   {"moved_sliding_window", "singles(SLIDING_WINDOW, %s, readApart)", needSingles | needPlace},
	logMoved:             {"moved_log", "singles(LOG, %s, readApart)", needSingles | needPlace},
	subWindowMoved:       {"moved_sub_windows", "singles(SUB_WINDOWS, %s, readApart)", needSingles | needPlace},
	nothing:              {"nothing", "''", 0},
}

// algorithms are what each needs, its entry for singles, that for singles with holds, and that for singles whose
// states may be in keys of their own.
var algorithms = [...]struct {
	needs                needs
	singles, held, moved entry
}{
	weir.TokenBucket:    {needBucket, bucketSingles, bucketHeld, bucketMoved},
	weir.LeakyBucket:    {needBucket, bucketSingles, bucketHeld, bucketMoved},
	weir.FixedWindow:    {needFixedWindow, fixedWindowSingles, fixedWindowHeld, fixedWindowMoved},
	weir.SlidingWindow:  {needSlidingWindow, slidingWindowSingles, slidingWindowHeld, slidingWindowMoved},
	weir.SlidingLog:     {needLog, logSingles, logHeld, logMoved},
	weir.SlidingBuckets: {needSubWindows, subWindowSingles, subWindowHeld, subWindowMoved},
	weir.InFlight:       {needLog, logSingles, logHeld, logMoved},
}

// library is the text of the files.
type library struct {
	files     []string
	functions string // as FUNCTION LOAD takes them
	name      string // of the library, and what the names of its functions begin with

	mu      sync.Mutex
	scripts map[scriptKey]*script
}

type scriptKey struct {
	entry entry
	needs needs
}

// newLibrary reads the files. The name has a hash of the text, so that versions can share one Redis; and
// what a name stands for never changes.
func newLibrary(change func(text string) string) *library {
	l := &library{scripts: map[scriptKey]*script{}}
	var all strings.Builder
	for _, file := range files {
		text, err := luaFiles.ReadFile("lua/" + file.name + ".lua")
		if err != nil {
			panic(fmt.Sprintf("redis: there is no file %s", file.name)) // which every test would have found
		}
		l.files = append(l.files, change(string(text)))
		all.WriteString(l.files[len(l.files)-1])
	}
	for _, e := range entries {
		fmt.Fprintf(&all, "redis.register_function('NAME_%s', function(keys, args) return %s end)\n", e.name, strings.Replace(e.does, "%s", "keys, args", 1))
	}
	sum := sha256.Sum256([]byte(all.String()))
	l.name = "weir_" + hex.EncodeToString(sum[:8])
	l.functions = "#!lua name=" + l.name + "\n" + strings.ReplaceAll(all.String(), "'NAME_", "'"+l.name+"_")
	return l
}

var theLibrary = sync.OnceValue(func() *library {
	return newLibrary(func(text string) string { return text })
})

// function is the name of an entry.
func (l *library) function(e entry) string { return l.name + "_" + entries[e].name }

// script is an entry with the files for its needs.
func (l *library) script(e entry, n needs) *script {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := scriptKey{e, n}
	if s := l.scripts[key]; s != nil {
		return s
	}
	var all strings.Builder
	for i, text := range l.files {
		if files[i].use&(n|entries[e].needs) != 0 {
			all.WriteString(text)
		}
		if files[i].name == lastNames {
			all.WriteString("return (function()\n")
		}
	}
	fmt.Fprintf(&all, "return %s\nend)()\n", strings.Replace(entries[e].does, "%s", "KEYS, ARGV", 1))
	l.scripts[key] = newScript(all.String())
	return l.scripts[key]
}

// script is a text that Redis knows by its SHA-1 once it has run it.
type script struct{ text, sha string }

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text, hex.EncodeToString(sum[:])}
}

func (s *script) run(ctx context.Context, client Client, keys []string, arg string) (string, error) {
	answer, err := client.Eval(ctx, evalSHA, s.sha, keys, arg)
	if saysAny(err, "NOSCRIPT") {
		return client.Eval(ctx, eval, s.text, keys, arg)
	}
	return answer, err
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

// jointTake is sent for ops to take of which some have to know of others.
const jointTake = 10

// word is what is sent for the verb of a check.
func (c *check) word() int64 {
	if c.verb == take && !c.isPlain() {
		return jointTake
	}
	return int64(c.verb)
}

// entryNumbers are how the entries of a log with this period are made, instead of what a bucket has:
// how many ranks an entry can tell apart, what its second half has of a time, and after how long times
// begin again.
func entryNumbers(period int64) (ranks, digits, span int64) {
	timeBits := max(43, bits.Len64(uint64(period)))
	return 1 << (64 - timeBits), 1 << (timeBits - 32), 1 << timeBits
}
