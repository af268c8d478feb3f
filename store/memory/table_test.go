package memory

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
)

// The table does what a map does, through growth, removal and shrinking. Hashes
// are drawn from few values, so that homes are crowded and ids almost agree.
func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table table
		model := map[id]weir.State{}
		drawID := rapid.Custom(func(t *rapid.T) id {
			return id{
				hi: rapid.SampledFrom([]uint64{0, 1, 2, 1 << 20, 1 << 62, 1 << 63, 1<<63 + 1, 1<<64 - 1}).Draw(t, "hi"),
				lo: rapid.Uint64Range(0, 30).Draw(t, "lo")<<2 | 1,
			}
		})
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k := drawID.Draw(t, "id")
				s := weir.State{A: rapid.Int64Range(0, 9).Draw(t, "a")}
				slot, found := table.find(k)
				if _, want := model[k]; found != want {
					t.Fatalf("find(%v) = %v, want %v", k, found, want)
				}
				if !found {
					slot = table.insert(k)
				}
				table.entries[slot].state = s
				table.entries[slot].setRefused(s.A%2 == 1)
				model[k] = s
			},
			"remove": func(t *rapid.T) {
				k := drawID.Draw(t, "id")
				if slot, found := table.find(k); found {
					table.remove(slot)
				}
				delete(model, k)
			},
			"shrink": func(t *rapid.T) { table.shrink() },
			"": func(t *rapid.T) {
				if table.keys != len(model) {
					t.Fatalf("%d keys, want %d", table.keys, len(model))
				}
				for k, want := range model {
					slot, found := table.find(k)
					if !found || table.entries[slot].state != want || table.entries[slot].refused() != (want.A%2 == 1) {
						t.Fatalf("key %v is lost or wrong", k)
					}
				}
				used := 0
				for i := range table.entries {
					if !table.entries[i].free() {
						used++
					}
				}
				if used != len(model) {
					t.Fatalf("%d slots are in use, want %d", used, len(model))
				}
			},
		})
	})
}

// Blocks do not overlap, come empty, and are used again.
func TestArena(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a arena
		type owned struct {
			b     block
			words int
			mark  int64
		}
		var all []owned
		mark := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				n := rapid.SampledFrom([]int{1, 2, 3, 60, 64, 65, 4096, 5000, 10000}).Draw(t, "words")
				mark++
				o := owned{a.take(n), n, mark}
				words := a.words(o.b)
				if len(words) < n || len(words) >= 2*n && n > 1 {
					t.Fatalf("%d words were asked for, %d given", n, len(words))
				}
				for i := range words {
					if words[i] != 0 {
						t.Fatal("a new block is not empty")
					}
					words[i] = mark
				}
				all = append(all, o)
			},
			"give": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("none")
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				a.give(all[i].b)
				all = append(all[:i], all[i+1:]...)
			},
			"": func(t *rapid.T) {
				for _, o := range all {
					for _, w := range a.words(o.b) {
						if w != o.mark {
							t.Fatal("a block was overwritten by another")
						}
					}
				}
			},
		})
	})
}
