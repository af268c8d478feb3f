package bench

import (
	"fmt"
	"math/rand/v2"
)

// Keys returns n distinct keys as a server would see them, users and addresses
// by turns, in memory of their own. Two calls return equal keys in different
// places: a map that was filled with one set cannot recognise the other by its
// address, which a real request would not have in common either.
func Keys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		if i%2 == 0 {
			keys[i] = fmt.Sprintf("user:%010d", i/2)
			continue
		}
		// An odd factor permutes the 32-bit numbers, so no address comes twice.
		ip := uint32(i/2) * 2654435761
		keys[i] = fmt.Sprintf("%d.%d.%d.%d", byte(ip>>24), byte(ip>>16), byte(ip>>8), byte(ip))
	}
	return keys
}

// Walk returns the order in which a goroutine visits keys, as so many indices.
// It is the same in every run and for every contestant, so that the measured
// loop needs no random numbers.
func Walk(goroutine, keys, length int) []uint32 {
	random := rand.New(rand.NewPCG(0x77656972, uint64(goroutine)))
	walk := make([]uint32, length)
	for i := range walk {
		walk[i] = random.Uint32N(uint32(keys))
	}
	return walk
}

// Walks are those of so many goroutines.
func Walks(goroutines, keys, length int) [][]uint32 {
	walks := make([][]uint32, goroutines)
	for g := range walks {
		walks[g] = Walk(g, keys, length)
	}
	return walks
}
