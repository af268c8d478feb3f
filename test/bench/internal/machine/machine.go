// Package machine says where a run took place, and keeps its weather even.
package machine

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Description is where a run took place. Only ratios carry over to another.
type Description struct {
	Go   string `json:"go"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPU  string `json:"cpu"`
	CPUs int    `json:"cpus"`
}

// Describe describes the machine that it runs on.
func Describe() Description {
	return Description{runtime.Version(), runtime.GOOS, runtime.GOARCH, cpuModel(), runtime.NumCPU()}
}

func (d Description) String() string {
	return fmt.Sprintf("%s, %s/%s, %d × %s", d.Go, d.OS, d.Arch, d.CPUs, d.CPU)
}

// cpuModel is what Linux calls the processor; elsewhere it stays unknown.
func cpuModel() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// FixGC makes the collector's share the same whatever the environment says.
func FixGC() {
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(math.MaxInt64)
}
