package memory

import (
	"runtime"

	"github.com/weirhq/weir/test/bench/internal/clients"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/peers"
)

// Size is what a contestant keeps of each of many keys, in bytes on the heap.
// The text of a key is not counted where the contestant only refers to it.
type Size struct {
	Contestant peers.Contestant `json:"contestant"`
	Keys       int              `json:"keys"`
	Once       float64          `json:"bytes_per_key_once"`      // after one check of each key
	Exhausted  float64          `json:"bytes_per_key_exhausted"` // after all hundred units of each key
}

// sizes measures one contestant after the other, each alone in memory.
func sizes(o Options, progress command.Progress) (out []Size) {
	keys := clients.Keys(o.Keys[len(o.Keys)-1])
	contestants := peers.InMemory()
	for i, c := range contestants {
		progress(i, len(contestants), "bytes a key")
		out = append(out, Size{
			Contestant: c,
			Keys:       len(keys),
			Once:       bytesPerKey(c, keys, func(l peers.Limiter, key string) { l.Take(key) }),
			Exhausted:  bytesPerKey(c, keys, func(l peers.Limiter, key string) { l.Drain(key) }),
		})
	}
	runtime.KeepAlive(keys)
	return out
}

func bytesPerKey(c peers.Contestant, keys []string, use func(peers.Limiter, string)) float64 {
	before := heap()
	l := c.New(peers.Exhaustible, len(keys))
	for _, key := range keys {
		use(l, key)
	}
	after := heap()
	l.Close()
	runtime.KeepAlive(l) // Close alone keeps nothing of a contestant without background work
	return float64(after-before) / float64(len(keys))
}

// heap is what is alive. Finalizers and pools let go only in the second
// collection.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
