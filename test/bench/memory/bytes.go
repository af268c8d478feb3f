package memory

import (
	"runtime"

	"github.com/weirhq/weir/test/bench/internal/clients"
	"github.com/weirhq/weir/test/bench/peers"
)

// Size is what a contestant keeps of each of many keys, in bytes on the heap.
// The text of a key is not counted where the contestant only refers to it.
type Size struct {
	Contestant peers.Contestant
	Keys       int
	Once       float64 // after one check of each key
	Exhausted  float64 // after all hundred units of each key
}

// Sizes measures one contestant after the other, each alone in memory.
func Sizes(o Options) []Size {
	keys := clients.Keys(o.Keys[len(o.Keys)-1])
	contestants := peers.InMemory()
	sizes := make([]Size, 0, len(contestants))
	for i, c := range contestants {
		if o.Progress != nil {
			o.Progress(i, len(contestants), "bytes a key")
		}
		sizes = append(sizes, size(c, keys))
	}
	runtime.KeepAlive(keys)
	return sizes
}

func size(c peers.Contestant, keys []string) Size {
	return Size{
		Contestant: c,
		Keys:       len(keys),
		Once:       bytesPerKey(c, keys, func(l peers.Limiter, key string) { l.Take(key) }),
		Exhausted:  bytesPerKey(c, keys, peers.Limiter.Drain),
	}
}

func bytesPerKey(c peers.Contestant, keys []string, use func(peers.Limiter, string)) float64 {
	before := heap()
	l := c.New(peers.Exhaustible, len(keys))
	for _, key := range keys {
		use(l, key)
	}
	after := heap()
	l.Close()
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
