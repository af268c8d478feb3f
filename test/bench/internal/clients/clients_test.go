package clients

import (
	"slices"
	"testing"
)

func TestKeysAreDistinct(t *testing.T) {
	const n = 1_000_000
	seen := make(map[string]struct{}, n)
	for _, key := range Keys(n) {
		seen[key] = struct{}{}
	}
	if _, ok := seen[""]; ok || len(seen) != n {
		t.Errorf("%d distinct keys of %d, an empty one: %t", len(seen), n, ok)
	}
}

func TestWalkVisitsTheKeys(t *testing.T) {
	for keys, least := range map[int]int{1: 1, 1000: 1000, 1_000_000: 600_000} {
		seen := make(map[uint32]struct{})
		for _, i := range Walk(0, keys, 1<<20) {
			if int(i) >= keys {
				t.Fatalf("walk over %d keys goes to %d", keys, i)
			}
			seen[i] = struct{}{}
		}
		if len(seen) < least {
			t.Errorf("walk over %d keys visits only %d of them", keys, len(seen))
		}
	}
	if slices.Equal(Walk(0, 1000, 1000), Walk(1, 1000, 1000)) {
		t.Error("two goroutines walk in step")
	}
}
