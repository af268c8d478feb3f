package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

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

// useLibrary has a store call functions. The name of the library has a hash of its text, so that versions
// share one Redis.
func useLibrary(t *testing.T, s *Store, client rueidis.Client) {
	t.Helper()
	var b strings.Builder
	for _, part := range parts {
		file, err := os.ReadFile("lua/" + part + ".lua")
		if err != nil {
			t.Fatal(err)
		}
		b.Write(file)
	}
	for _, entry := range slices.Sorted(maps.Keys(entries)) {
		fmt.Fprintf(&b, "redis.register_function('NAME_%s', %s)\n", entry, entries[entry])
	}
	sum := sha256.Sum256([]byte(b.String()))
	name := "weir_" + hex.EncodeToString(sum[:6])
	text := "#!lua name=" + name + "\n" + strings.ReplaceAll(b.String(), "'NAME_", "'"+name+"_")
	err := client.Do(t.Context(), client.B().FunctionLoad().FunctionCode(text).Build()).Error()
	if said, _ := replyOf(err); err != nil && !strings.Contains(said, "already exists") {
		t.Fatal(err)
	}
	s.callFunction = func(ctx context.Context, entry string, keys []string, arg string) (string, error) {
		return client.Do(ctx, client.B().Fcall().Function(name+"_"+entry).Numkeys(int64(len(keys))).Key(keys...).Arg(arg).Build()).ToString()
	}
}
