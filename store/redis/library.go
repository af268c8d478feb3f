package redis

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strings"
	"sync"
)

// The library is the arithmetic of the scripts as plain functions, which Redis 7 runs without running
// their definitions at every call. It is to take their place; so far it is only tried by tests, which
// switch it on. lua/*.lua are what Redis runs, one after the other, as they are here.

//go:embed lua/*.lua
var luaFiles embed.FS

// parts are the files of the library, in their order.
var parts = []string{
	"numbers", "state", "bucket", "window", "sub_windows", "log", "pages", "sliding_log", "decide", "singles", "requests", "hold_list", "holds",
}

// entries are the functions that a store calls.
var entries = map[string]string{
	"bucket":         "function(keys, args) return singles(BUCKET, keys, args) end",
	"fixed_window":   "function(keys, args) return singles(FIXED_WINDOW, keys, args) end",
	"sliding_window": "function(keys, args) return singles(SLIDING_WINDOW, keys, args) end",
	"log":            "function(keys, args) return singles(LOG, keys, args) end",
	"sub_windows":    "function(keys, args) return singles(SUB_WINDOWS, keys, args) end",
	"requests":       "requests",
	"holds":          "holds",
}

// library returns the name of the library, which has a hash of its text, so that versions share one
// Redis, and the text.
var library = sync.OnceValues(func() (name, text string) {
	var b strings.Builder
	for _, part := range parts {
		file, err := luaFiles.ReadFile("lua/" + part + ".lua")
		if err != nil {
			panic(fmt.Sprintf("redis: there is no %s.lua", part)) // which a test would have found
		}
		b.Write(file)
	}
	sum := sha256.Sum256([]byte(b.String()))
	name = "weir_" + hex.EncodeToString(sum[:6])
	for entry, function := range entries {
		fmt.Fprintf(&b, "redis.register_function('%s_%s', %s)\n", name, entry, function)
	}
	return name, "#!lua name=" + name + "\n" + b.String()
})

// function returns the entry for a request.
func (r *request) function() string {
	switch {
	case r.needs&needHolds != 0:
		return "holds"
	case r.form == columns:
		return "requests"
	}
	switch r.needs &^ needBack {
	case needBucket:
		return "bucket"
	case needFixedWindow:
		return "fixed_window"
	case needSlidingWindow:
		return "sliding_window"
	case needSlidingLog:
		return "log"
	default:
		return "sub_windows"
	}
}

// callFunction calls an entry, and loads the library if Redis does not have it.
func (s *Store) callFunction(ctx context.Context, entry string, keys []string, arg string) (string, error) {
	client := s.link.made.Current()
	if client == nil {
		return "", errNotConnected
	}
	name, text := library()
	call := func() (string, error) {
		return client.Do(ctx, client.B().Fcall().Function(name+"_"+entry).Numkeys(int64(len(keys))).Key(keys...).Arg(arg).Build()).ToString()
	}
	answer, err := call()
	if said, ok := replyOf(err); !ok || !strings.Contains(said, "Function not found") {
		return answer, err
	}
	for _, node := range client.Nodes() {
		err := node.Do(ctx, node.B().FunctionLoad().FunctionCode(text).Build()).Error()
		if said, ok := replyOf(err); err != nil && !(ok && strings.Contains(said, "already exists")) {
			return "", err
		}
	}
	return call()
}

// jointTake is sent for ops to take of which some have to know of others.
const jointTake = 10

// word is what is sent for the verb of a check.
func (c *check) word(library bool) int64 {
	if library && c.verb == take && !c.isPlain() {
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
