package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// stolen is for how long the host of this virtual machine has run something else on each core.
func stolen() map[string]time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil
	}
	const column, tick = 8, 10 * time.Millisecond
	found := map[string]time.Duration{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) <= column || fields[0] == "cpu" || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		if ticks, err := strconv.Atoi(fields[column]); err == nil {
			found[fields[0]] = time.Duration(ticks) * tick
		}
	}
	return found
}
