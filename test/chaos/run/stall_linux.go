package run

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// waits is for how long each thread of a process has been ready to run without a core.
func waits(pid int) map[string]time.Duration {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	found := make(map[string]time.Duration, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		var ran, waited time.Duration
		if _, failed := fmt.Sscan(string(text), &ran, &waited); err == nil && failed == nil {
			found[file] = waited
		}
	}
	return found
}
