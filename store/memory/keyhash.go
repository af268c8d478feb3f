package memory

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"unsafe"
)

// maxHashedLen is the longest key in bytes.
const maxHashedLen = 1024

// seedLen is the length of a seed.
const seedLen = 32

// Each key is two words, its length and its kind, and then its bytes. The
// second pass is the first with the secret shifted by two words.
const secretWords = 2 + maxHashedLen/8 + 2 + 4

// keyHash is the NH universal hash of UMAC (RFC 4418) on 64-bit words, run twice. Without
// the secret, two keys that collide can be found only by chance: about 1 in 2^63 for
// each of the two passes, whatever the keys.
type keyHash struct {
	secret [secretWords]uint64
}

// newKeyHash expands a seed, which must come from a good source of randomness.
func newKeyHash(seed [seedLen]byte) *keyHash {
	h := new(keyHash)
	stream := rand.NewChaCha8(seed)
	for i := range h.secret {
		h.secret[i] = stream.Uint64()
	}
	return h
}

// Sum returns 128 bits for a key of at most maxHashedLen bytes and a number that
// tells apart the uses of the key.
func (h *keyHash) Sum(key string, kind uint64) (uint64, uint64) {
	s, n := &h.secret, uint64(len(key))
	one, two := product128(kind+s[0], n+s[1]), product128(kind+s[2], n+s[3])
	p := unsafe.Slice(unsafe.StringData(key), len(key))
	i := 2
	for ; len(p) > 16; p, i = p[16:], i+2 {
		k, a, b := s[i:i+4:i+4], binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
		one.mixIn(a+k[0], b+k[1])
		two.mixIn(a+k[2], b+k[3])
	}
	k := s[i : i+4 : i+4]
	a, b := lastWords(p)
	one.mixIn(a+k[0], b+k[1])
	two.mixIn(a+k[2], b+k[3])

	const end = secretWords - 4
	return one.mix(s[end], s[end+1]), two.mix(s[end+2], s[end+3])
}

// lastWords reads up to 16 bytes as two words, which may overlap: the length, which
// is hashed too, says how.
func lastWords(p []byte) (a, b uint64) {
	switch n := len(p); {
	case n >= 8:
		return binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[n-8:])
	case n >= 4:
		return uint64(binary.LittleEndian.Uint32(p)), uint64(binary.LittleEndian.Uint32(p[n-4:]))
	case n > 0:
		return uint64(p[0]) | uint64(p[n/2])<<8 | uint64(p[n-1])<<16, 0
	}
	return 0, 0
}

// keySum is a 128-bit accumulator.
type keySum struct{ high, low uint64 }

func product128(a, b uint64) (s keySum) {
	s.high, s.low = bits.Mul64(a, b)
	return s
}

func (s *keySum) mixIn(a, b uint64) {
	high, low := bits.Mul64(a, b)
	var carry uint64
	s.low, carry = bits.Add64(s.low, low, 0)
	s.high, _ = bits.Add64(s.high, high, carry)
}

// mix folds the keySum into 64 bits that are good enough to index a table with.
func (s *keySum) mix(k0, k1 uint64) uint64 {
	high, low := bits.Mul64(s.low^k0, s.high^k1)
	x := high ^ low ^ s.low
	x ^= x >> 32
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>29
}
