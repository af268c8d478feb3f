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

// Describe describes the machine that it runs on.
func Describe() Machine {
	return Machine{runtime.Version(), runtime.GOOS, runtime.GOARCH, cpuModel(), runtime.NumCPU()}
}

func (d Machine) String() string {
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

// Memory is what a process has in memory.
type Memory struct {
	Resident int64 // bytes in all
	Own      int64 // of them, those that are no pages of files; the system can read the others again
}

// MemoryOf returns what a process has in memory. Only Linux knows.
func MemoryOf(process int) (m Memory, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	if err != nil {
		return m, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "VmRSS":
			_, err = fmt.Sscan(value, &m.Resident)
		case "RssAnon":
			_, err = fmt.Sscan(value, &m.Own)
		}
		if err != nil {
			return m, fmt.Errorf("bench: %q is not what Linux says of a process", line)
		}
	}
	m.Resident, m.Own = m.Resident<<10, m.Own<<10
	return m, nil
}
