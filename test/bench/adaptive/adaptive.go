// Package adaptive compares limiters of requests in flight in front of a simulated service whose
// capacity is known, and that gets more requests than it can answer. See internal/testkit/testoverload.
//
// Time is virtual. Limiters that read the clock themselves do it in a bubble of
// testing/synctest, in which time passes as the simulation says.
package adaptive

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// Files are all results, and the worst of each contestant.
var Files = []string{"adaptive.txt", "adaptive-summary.txt"}

// Run writes the tables. A bubble exists only in a test, so it runs the one of this package, in
// which the rest of the suite is.
func Run(r *bench.Run) {
	dir := r.TempDir()
	flags := []string{"-tables", dir}
	if r.Quick {
		flags = append(flags, "-quick")
	}
	if out, err := r.GoTest(".", "./adaptive", "TestTables", flags...); err != nil {
		fmt.Fprintf(os.Stderr, "%s", out) // an aim was missed; the tables say which
	}
	for _, name := range Files {
		r.File(name).Write(testkit.Must(os.ReadFile(filepath.Join(dir, name)))(r))
	}
}
