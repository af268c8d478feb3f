package machine

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// A process that works for a while was busy for about as long: of what the clock says,
// on a machine that others use as well, no more than all processors have.
func TestCPU(t *testing.T) {
	if _, err := CPU(-1); err == nil {
		t.Error("there is a process -1")
	}
	if runtime.GOOS != "linux" {
		return // unknown elsewhere, as reported above
	}
	before, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for used := time.Duration(0); used < 100*time.Millisecond; {
		now, err := CPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		used = now - before
		if passed := time.Since(begin); passed > 10*time.Second || used > time.Duration(runtime.NumCPU())*passed+2*tick {
			t.Fatalf("it was busy for %v of %v", used, passed)
		}
	}
}
