package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Machine is where a run took place. Only ratios carry over to another.
type Machine struct {
	Go   string `json:"go"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPU  string `json:"cpu"`
	CPUs int    `json:"cpus"`
}

// Describe describes the machine that it runs on. Only Linux says what processor it has.
func Describe() Machine {
	model, err := entry("/proc/cpuinfo", "model name")
	if err != nil {
		model = "unknown"
	}
	return Machine{runtime.Version(), runtime.GOOS, runtime.GOARCH, model, runtime.NumCPU()}
}

func (d Machine) String() string {
	return fmt.Sprintf("%s, %s/%s, %d × %s", d.Go, d.OS, d.Arch, d.CPUs, d.CPU)
}

// entry is what a file of Linux has behind a name and a colon, for the first time.
func entry(file, name string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("bench: %s does not say %s", file, name)
}

// tick is the unit of Linux for the time that a process was running.
const tick = 10 * time.Millisecond

// CPU returns for how long processes have kept a processor busy, each to 20 ms. Only Linux knows.
func CPU(processes ...int) (sum time.Duration, err error) {
	for _, p := range processes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
		if err != nil {
			return 0, err
		}
		// The name in parentheses may have spaces. After it, utime and stime are fields 12
		// and 13.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		var user, system int64
		if len(fields) >= 13 {
			_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
		}
		if len(fields) < 13 || err != nil {
			return 0, fmt.Errorf("bench: %q is not what Linux says of a process", text)
		}
		sum += time.Duration(user+system) * tick
	}
	return sum, nil
}

// BusyOf tells for how long processes have kept a processor busy; 0 where that is unknown.
func BusyOf(processes ...int) func() time.Duration {
	return func() time.Duration {
		busy, _ := CPU(processes...)
		return busy
	}
}

// Memory is what a process has in memory.
type Memory struct {
	Resident int64 // bytes in all
	Own      int64 // of them, those that are no pages of files; the system can read the others again
}

// MemoryOf returns what a process has in memory. Only Linux knows.
func MemoryOf(process int) (m Memory, err error) {
	for name, bytes := range map[string]*int64{"VmRSS": &m.Resident, "RssAnon": &m.Own} {
		text, err := entry(fmt.Sprintf("/proc/%d/status", process), name)
		if err == nil {
			_, err = fmt.Sscan(text, bytes)
		}
		if err != nil {
			return m, err
		}
		*bytes <<= 10 // Linux counts in KiB
	}
	return m, nil
}

// Busy does something, and returns for how long it has kept the processors busy in these processes.
func Busy(do func() error, processes ...int) (time.Duration, error) {
	before, err := CPU(processes...)
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := CPU(processes...)
	return after - before, err
}
