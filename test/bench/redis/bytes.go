package redis

import (
	"github.com/weirhq/weir/test/bench/internal/clients"
	"github.com/weirhq/weir/test/bench/peers"
)

// Size is what a contestant keeps of each of many clients, in bytes.
type Size struct {
	Contestant      peers.Contestant
	Keys            int
	Once, Exhausted Bytes // after one check of each key, after all hundred units
}

// Bytes are a client's share.
type Bytes struct {
	Usage float64 // by MEMORY USAGE: its keys and values
	Grown float64 // of used_memory: with its share of the tables, also of that of expiries
}

// sizes measures one contestant after the other, each alone on the server.
func (s *suite) sizes() ([]Size, error) {
	keys := clients.Keys(s.Keys)
	out := make([]Size, len(s.contestants))
	for i, c := range s.contestants {
		s.report("bytes a key")
		s.done++
		once, err := s.bytes(c, keys, func(l peers.Limiter, key string) { l.Take(key) })
		if err != nil {
			return nil, err
		}
		exhausted, err := s.bytes(c, keys, peers.Limiter.Drain)
		if err != nil {
			return nil, err
		}
		out[i] = Size{c, len(keys), once, exhausted}
	}
	return out, nil
}

// bytes uses every key once, alone on the server.
func (s *suite) bytes(c peers.Contestant, keys []string, use func(peers.Limiter, string)) (Bytes, error) {
	l := c.New(peers.Exhaustible, len(keys))
	defer l.Close()
	use(l, "somebody") // connects, and loads the script
	if err := s.server.empty(); err != nil {
		return Bytes{}, err
	}
	before, err := s.server.memory()
	if err != nil {
		return Bytes{}, err
	}
	for _, key := range keys {
		use(l, key)
	}
	// Comes first, since looking at every key also ends a rehash, during which
	// there are two tables.
	usage, err := s.server.usage()
	if err != nil {
		return Bytes{}, err
	}
	after, err := s.server.memory()
	n := float64(len(keys))
	return Bytes{float64(usage) / n, (after - before) / n}, err
}
