package pressure

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// ticks is how many there are in a second of CPU time in /proc, on every architecture of Linux
// that Go has.
const ticks = 100

// processCPU is the CPU time of the process, of the processors that Go may use.
func processCPU(root string) *meter {
	stat := filepath.Join(root, "proc/self/stat")
	return &meter{where: "this process", read: func() (used, limit float64, err error) {
		text, err := os.ReadFile(stat)
		if err != nil {
			return 0, 0, err
		}
		// The name of the program, in parentheses, may have blanks and parentheses.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 13 {
			return 0, 0, fmt.Errorf("%s has no times", stat)
		}
		user, errUser := number(fields[11])
		system, errSystem := number(fields[12])
		return (user + system) / ticks, float64(runtime.GOMAXPROCS(0)), errors.Join(errUser, errSystem)
	}}
}

// processMemory is the memory of the process, of that of the machine. GOMEMLIMIT is no limit
// here: a program fills it with garbage before it collects that.
func processMemory(root string) *meter {
	status, info := filepath.Join(root, "proc/self/status"), filepath.Join(root, "proc/meminfo")
	return &meter{where: "this machine", read: func() (used, limit float64, err error) {
		used, err = field(status, "VmRSS:")
		limit, errLimit := field(info, "MemTotal:")
		return 1024 * used, 1024 * limit, errors.Join(err, errLimit)
	}}
}

// field reads a number from a file with a name and a number on each line.
func field(file, name string) (float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == name {
			return number(f[1])
		}
	}
	return 0, fmt.Errorf("%s has no %s", file, name)
}

// single reads a file of one number.
func single(file string) (float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return number(strings.TrimSpace(string(text)))
}

// number reads a whole number.
func number(text string) (float64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	return float64(n), err
}
