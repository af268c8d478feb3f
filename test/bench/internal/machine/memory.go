package machine

import (
	"fmt"
	"os"
	"strings"
)

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
			return m, fmt.Errorf("machine: %q is not what Linux says of a process", line)
		}
	}
	m.Resident, m.Own = m.Resident<<10, m.Own<<10
	return m, nil
}
