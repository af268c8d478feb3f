package redis

import (
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
func (s *suite) sizes() ([]Size, error) {
	keys := clients.Keys(s.Keys)
	out := make([]Size, len(s.contestants))
	for i, c := range s.contestants {
		s.report("bytes a key")
		s.done++
		size := Size{Contestant: c, Keys: len(keys)}
		var err error
		if size.UsageOnce, size.GrownOnce, err = s.bytes(c, keys, func(l peers.Limiter, key string) { l.Take(key) }); err != nil {
			return nil, err
		}
		if size.UsageExhausted, size.GrownExhausted, err = s.bytes(c, keys, func(l peers.Limiter, key string) { l.Drain(key) }); err != nil {
			return nil, err
		}
		out[i] = size
	}
	return out, nil
}

// bytes uses every key once, alone on the server.
func (s *suite) bytes(c peers.Contestant, keys []string, use func(peers.Limiter, string)) (usage, grown float64, err error) {
	l := c.New(peers.Exhaustible, len(keys))
	defer l.Close()
	use(l, "somebody") // connects, and loads the script
	if err := s.server.empty(); err != nil {
		return 0, 0, err
	}
	before, err := s.server.memory()
	if err != nil {
		return 0, 0, err
	}
	for _, key := range keys {
		use(l, key)
	}
	// Comes first, since looking at every key also ends a rehash, during which
	// there are two tables.
	used, err := s.server.usage()
	if err != nil {
		return 0, 0, err
	}
	after, err := s.server.memory()
	n := float64(len(keys))
	return float64(used) / n, (after - before) / n, err
}
