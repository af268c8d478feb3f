package engine

import (
	"testing"
	"time"
)

// A hold that has ended is forgotten at once, wherever it is among the others, and one that is
// being extended is not there.
func TestExtensionsForget(t *testing.T) {
	x := new(extensions)
	now := time.Now()
	holds := make([]*Hold, 100)
	for i := range holds {
		holds[i] = &Hold{ttl: time.Duration(i*37%100+1) * time.Hour}
		x.schedule(holds[i], now)
	}
	for i, h := range holds {
		x.unschedule(h)
		x.unschedule(h)
		if len(x.due) != len(holds)-i-1 {
			t.Fatalf("%d of %d are left", len(x.due), len(holds)-i-1)
		}
	}
	x.timer.Stop()
}
