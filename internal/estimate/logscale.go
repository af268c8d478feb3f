package estimate

import "math/bits"

// Slot returns the slot of a number.
func Slot(n uint64, fine uint) uint {
	if n < 2<<fine {
		return uint(n)
	}
	power := uint(bits.Len64(n)) - 1 - fine
	return power<<fine + uint(n>>(power&63))
}

// Bottom returns the smallest number in a slot, and how many numbers there are.
func Bottom(slot, fine uint) (n, width uint64) {
	power := slot >> fine
	if power > 0 {
		power--
	}
	return uint64(slot-power<<fine) << (power & 63), 1 << (power & 63)
}
