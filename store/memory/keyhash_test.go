package memory

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"
)

func seed(b byte) (s [seedLen]byte) {
	s[0] = b
	return s
}

type sumID struct{ a, b uint64 }

func sumOf(h *keyHash, key string, kind uint64) sumID {
	a, b := h.Sum(key, kind)
	return sumID{a, b}
}

// A snapshot of one version must be understood by the next: these must never
// change without a new snapshot version.
func TestSumIsStable(t *testing.T) {
	h := newKeyHash(seed(1))
	for key, want := range map[string]sumID{
		"alice":                 {0x296fc869946b847d, 0x5c67620349d7b76b},
		"":                      {0xc47d0c986ac2b7bf, 0x27e7f3a7fd6c8edf},
		strings.Repeat("x", 3):  {0xe069c5008f1a88fb, 0x2bc66b444baa5038},
		strings.Repeat("x", 4):  {0x4f4d1e8f5d45ec51, 0x465c3ac0d3db1633},
		strings.Repeat("x", 8):  {0x230a6c89e08813, 0x1435f1486999ef7a},
		strings.Repeat("x", 16): {0x221f2a1e73d9e5c0, 0x5fcec6a579ecd06},
		strings.Repeat("x", 32): {0xd4469cfafb4305c4, 0x78d86d3b2636973d},
		strings.Repeat("x", 33): {0xa3182acb5df32810, 0xe9a8296d34ba54d0},
	} {
		if got := sumOf(h, key, 7); got != want {
			t.Errorf("Sum(%q) = %#x, %#x; want %#x, %#x", key, got.a, got.b, want.a, want.b)
		}
	}
}

// Keys that are easily confused: prefixes, padding, repeated bytes, other kinds.
func TestSumTellsKeysApart(t *testing.T) {
	h := newKeyHash(seed(2))
	halves := map[uint64]string{}
	check := func(name, key string, kind uint64) {
		got := sumOf(h, key, kind)
		for i, half := range []uint64{got.a, got.b} {
			at := fmt.Sprintf("%d", i)
			if other, ok := halves[half]; ok {
				t.Fatalf("%s and %s agree in half %s", name, other, at)
			}
			halves[half] = name
		}
	}
	for _, letter := range []string{"\x00", "a", "\xff"} {
		for n := range maxHashedLen + 1 {
			if n == 0 && letter != "a" {
				continue
			}
			check(fmt.Sprintf("%q×%d", letter, n), strings.Repeat(letter, n), 0)
		}
	}
	for n := 1; n <= 40; n++ {
		for i := range n {
			key := []byte(strings.Repeat("a", n))
			key[i] = 'b'
			check(string(key), string(key), 0)
		}
	}
	for kind := range uint64(1000) {
		check(fmt.Sprintf("kind %d", kind+1), "k", kind+1)
	}
}

func TestSumDependsOnTheSeed(t *testing.T) {
	if sumOf(newKeyHash(seed(1)), "alice", 0) == sumOf(newKeyHash(seed(2)), "alice", 0) {
		t.Fatal("two seeds give the same keySum")
	}
}

// Every bit of a keySum changes about half of the time when the key changes a bit,
// so that any of them can index a table.
func TestSumSpreads(t *testing.T) {
	h := newKeyHash(seed(3))
	const keys = 4000
	var flips [128]int
	for i := range keys {
		a := sumOf(h, fmt.Sprintf("user:%07d", i), 0)
		b := sumOf(h, fmt.Sprintf("user:%07d", i^1), 0)
		for bit := range 64 {
			flips[bit] += int((a.a ^ b.a) >> bit & 1)
			flips[64+bit] += int((a.b ^ b.b) >> bit & 1)
		}
		if bits.OnesCount64(a.a^b.a) == 0 {
			t.Fatal("no bit changed")
		}
	}
	for bit, n := range flips {
		if n < keys*4/10 || n > keys*6/10 {
			t.Errorf("bit %d changed in %d of %d keys", bit, n, keys)
		}
	}
}

func BenchmarkSum(b *testing.B) {
	h := newKeyHash(seed(1))
	for _, n := range []int{8, 15, 31, 100} {
		key := strings.Repeat("k", n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				h.Sum(key, 1)
			}
		})
	}
}
