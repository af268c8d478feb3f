package testkit

import "testing"

var kept [][]byte

// What is needed is seen each time, and what was needed once is not.
func TestLeast(t *testing.T) {
	const size, bound = 8 << 20, 4 << 20
	times := 0
	if got := Least(bound, func() {
		times++
		kept = append(kept, make([]byte, size))
	}); got <= bound || times != 3 {
		t.Errorf("%d bytes, measured %d times", got, times)
	}
	times = 0
	if got := Least(bound, func() {
		if times++; times == 1 {
			kept = append(kept, make([]byte, size))
		}
	}); got > bound || times != 2 {
		t.Errorf("%d bytes, measured %d times", got, times)
	}
	kept = nil
}
