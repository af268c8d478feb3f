package testkit

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is for goroutines that are about to end: goleak itself gives them less than half a
// second, which is too short on a machine that does much else.
const patience = time.Minute

// Run runs the tests of a package and returns its exit code, which is not 0 either if they leave
// goroutines behind:
//
//	func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }
func Run(m *testing.M, options ...goleak.Option) int {
	if code := m.Run(); code != 0 {
		return code
	}
	if err := find(patience, options...); err != nil {
		fmt.Fprintln(os.Stderr, "goleak:", err)
		return 1
	}
	return 0
}

// find looks again and again until nothing is left, or its patience ends.
func find(patience time.Duration, options ...goleak.Option) (err error) {
	for deadline := time.Now().Add(patience); ; {
		if err = goleak.Find(options...); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
