// Command adaptive compares limiters that adapt to the capacity of a service, and writes the
// tables to standard output and to results/.
package main

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/command"
)

var files = []string{"adaptive.txt", "adaptive-summary.txt"}

func main() {
	command.Main(command.FirstLook, func(r *command.Run) {
		dir := r.TempDir()
		args := []string{"test", "./adaptive", "-run", "^TestTables$", "-count", "1", "-timeout", "0", "-args", "-tables", dir}
		if r.Quick {
			args = append(args, "-quick")
		}
		test := exec.Command("go", args...)
		test.Stderr = os.Stderr
		out, err := test.Output()
		if err != nil {
			r.Logf("%s", out) // an aim was missed; the tables say which
		}
		for _, name := range files {
			r.File(name).Write(testcall.Must(os.ReadFile(filepath.Join(dir, name)))(r))
		}
	}, files...)
}
