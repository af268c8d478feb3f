package estimate

import (
	"math"
	"testing"
)

// Slots follow one another, and none is wider than it says.
func TestSlots(t *testing.T) {
	for _, fine := range []uint{0, 3, 5} {
		last := Slot(math.MaxUint64, fine)
		next := uint64(0)
		for slot := range last + 1 {
			bottom, width := Bottom(slot, fine)
			if bottom != next || width > 1 && width > bottom>>fine {
				t.Fatalf("slot %d of %d has %d from %d on, after %d", slot, fine, width, bottom, next)
			}
			if top := bottom + width - 1; Slot(bottom, fine) != slot || Slot(top, fine) != slot {
				t.Fatalf("slot %d of %d is %d to %d", slot, fine, Slot(bottom, fine), Slot(top, fine))
			}
			next = bottom + width
		}
		if next != 0 {
			t.Errorf("the last slot ends at %d", next)
		}
	}
}
