package machine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of Linux for the time that a process was running.
const tick = 10 * time.Millisecond

// CPU returns for how long a process has kept a processor busy, to 20 ms. Only Linux
// knows.
func CPU(process int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may have spaces. After it, utime and stime are fields 12
	// and 13.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("machine: %q is not what Linux says of a process", text)
	}
	sum := time.Duration(0)
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("machine: %q is not what Linux says of a process", text)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}
