package memory

import "math/bits"

// block names a run of words in an arena: its size class and, from 1, its
// number in the class. The zero block is none.
type block uint64

func (b block) class() int { return int(b >> 32) }
func (b block) index() int { return int(uint32(b)) - 1 }

// arena hands out the tails of the two algorithms that have one. Blocks are
// powers of two words in large chunks, so that the garbage collector sees the
// chunks and not the keys.
type arena struct {
	classes []class
}

type class struct {
	chunks [][]int64
	unused []uint32 // numbers that were given back
	given  int      // numbers handed out at least once
}

// chunkWords is the size of a chunk, unless one block is larger.
const chunkWords = 4096

func perChunk(class int) int { return max(1, chunkWords>>class) }

// takeBlock returns a block of at least the given number of words, all zero.
func (a *arena) takeBlock(words int) block {
	size := bits.Len(uint(words - 1))
	for len(a.classes) <= size {
		a.classes = append(a.classes, class{})
	}
	c := &a.classes[size]
	if n := len(c.unused); n > 0 {
		b := block(size)<<32 | block(c.unused[n-1])
		c.unused = c.unused[:n-1]
		clear(a.words(b))
		return b
	}
	if c.given%perChunk(size) == 0 {
		c.chunks = append(c.chunks, make([]int64, perChunk(size)<<size))
	}
	c.given++
	return block(size)<<32 | block(c.given)
}

// words is the memory of a block; nil for none.
func (a *arena) words(b block) []int64 {
	if b == 0 {
		return nil
	}
	size, n := b.class(), perChunk(b.class())
	start := b.index() % n << size
	return a.classes[size].chunks[b.index()/n][start : start+1<<size : start+1<<size]
}

// give takes a block back. A class with no block in use gives up its memory.
func (a *arena) give(b block) {
	if b == 0 {
		return
	}
	c := &a.classes[b.class()]
	c.unused = append(c.unused, uint32(b))
	if len(c.unused) == c.given {
		*c = class{}
	}
}
