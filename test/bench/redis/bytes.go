package redis

import (
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/clients"
	"github.com/weirhq/weir/test/bench/peers"
)

// Size is what a contestant keeps of each of many clients, in bytes: after one check of
// each key, and after all hundred units. Usage is by MEMORY USAGE, its keys and values.
// Grown is of used_memory, with its share of the tables, also of that of expiries.
type Size struct {
	Contestant     peers.Contestant `json:"contestant"`
	Keys           int              `json:"keys"`
	UsageOnce      float64          `json:"memory_usage_per_key_once"`
	UsageExhausted float64          `json:"memory_usage_per_key_exhausted"`
	GrownOnce      float64          `json:"used_memory_per_key_once"`
	GrownExhausted float64          `json:"used_memory_per_key_exhausted"`
}

// sizes measures one contestant after the other, each alone on the server.
func (s *suite) sizes() []Size {
	keys := clients.Keys(s.Keys)
	out := make([]Size, len(s.contestants))
	for i, c := range s.contestants {
		s.report("bytes a key")
		s.done++
		size := Size{Contestant: c, Keys: len(keys)}
		size.UsageOnce, size.GrownOnce = s.bytes(c, keys, func(l peers.Limiter, key string) { l.Take(key) })
		size.UsageExhausted, size.GrownExhausted = s.bytes(c, keys, func(l peers.Limiter, key string) { l.Drain(key) })
		out[i] = size
	}
	return out
}

// bytes uses every key once, alone on the server.
func (s *suite) bytes(c peers.Contestant, keys []string, use func(peers.Limiter, string)) (usage, grown float64) {
	l := c.New(peers.Exhaustible, len(keys))
	defer l.Close()
	use(l, "somebody") // connects, and loads the script
	s.server.empty()
	before := testcall.Must(s.server.memory())(s)
	for _, key := range keys {
		use(l, key)
	}
	// Comes first, since looking at every key also ends a rehash, during which
	// there are two tables.
	used := testcall.Must(s.server.usage())(s)
	after := testcall.Must(s.server.memory())(s)
	n := float64(len(keys))
	return float64(used) / n, (after - before) / n
}
