package memory

import (
	"math"
	"math/rand/v2"
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
				last := rapid.IntRange(0, 60).Draw(t, "last")
				if after, known := table.findAfter(last, k); known != found || found && after != slot {
					t.Fatalf("findAfter(%d, %v) = %d, %v, want %d, %v", last, k, after, known, slot, found)
				}
				if !found {
					slot = table.insert(k)
				}
				table.entries[slot].state = s
				table.entries[slot].setDenied(s.A%2 == 1)
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
					if !found || table.entries[slot].state != want || table.entries[slot].denied() != (want.A%2 == 1) {
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
				o := owned{a.takeBlock(n), n, mark}
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

// Keys that all belong to the last home push on beyond the end, tails too.
func TestTableSpills(t *testing.T) {
	var table table
	for i := range block(100) {
		k := id{math.MaxUint64, uint64(i)<<2 | 1}
		if _, found := table.find(k); found {
			t.Fatalf("key %d is there already", i)
		}
		slot := table.insert(k)
		if table.tails == nil {
			table.tails = make([]block, len(table.entries))
		}
		table.tails[slot] = i
	}
	for i := range block(100) {
		if slot, found := table.find(id{math.MaxUint64, uint64(i)<<2 | 1}); !found || table.tails[slot] != i {
			t.Errorf("key %d is lost, or its tail", i)
		}
	}
}

// A table is 71 to 85 % full (one key more just before it grows), whether it grows or shrinks.
func TestTableLoad(t *testing.T) {
	var table table
	check := func(least, most uint64) {
		t.Helper()
		if keys := uint64(table.keys) * 100; keys < least*table.homes || keys > most*table.homes {
			t.Fatalf("%d keys have %d homes", table.keys, table.homes)
		}
	}
	for range 10_000 {
		table.insert(id{rand.Uint64(), 1})
		if table.keys > 100 {
			check(70, 86)
		}
	}
	for slot := 0; table.keys > 1000; slot++ {
		for !table.entries[slot].free() && table.keys > 1000 {
			table.remove(slot)
		}
	}
	table.shrink()
	check(74, 75)
	homes := table.homes
	if table.shrink(); table.homes != homes {
		t.Errorf("a table that is full enough went from %d to %d homes", homes, table.homes)
	}
}

// A block that was given back is the next to be taken.
func TestArenaUsesAgain(t *testing.T) {
	var a arena
	a.takeBlock(64) // keeps the class
	for range 1000 {
		a.give(a.takeBlock(64))
	}
	if c := a.classes[6]; c.given != 2 || len(c.chunks) != 1 {
		t.Errorf("%d blocks in %d chunks, want 2 in 1", c.given, len(c.chunks))
	}
}
