package overload

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Usage is what is used, as a share of what there is.
type Usage struct{ CPU, Memory float64 }

// Reader reads the usage. It is not safe for concurrent use.
type Reader struct {
	cpu, memory []*meter
	before      time.Duration // when CPU was read last
}

// meter is one limit, and what is used of it.
type meter struct {
	where string

	// read returns what is used: seconds of CPU since some time, or bytes; and the limit:
	// processors, or bytes. Without a limit, that is infinite.
	read func() (used, limit float64, err error)

	last  float64 // CPU used before
	known bool    // last is known
}

// OpenReader finds the limits of this process in a file system: "/", or a tree of files for tests.
func OpenReader(root string) (*Reader, error) {
	r := &Reader{}
	r.cpu, r.memory = cgroups(root)
	r.cpu = append(r.cpu, processCPU(root))
	r.memory = append(r.memory, processMemory(root))
	if _, err := r.Read(0); err != nil {
		return nil, fmt.Errorf("%w; CPU and memory can be read on Linux only, with /proc mounted", err)
	}
	return r, nil
}

// Read returns the usage of CPU since the last call, and of memory now. The argument is the time
// since any fixed instant. If a part cannot be read, it is 0, and the error says why.
func (r *Reader) Read(now time.Duration) (u Usage, err error) {
	passed := (now - r.before).Seconds()
	r.before = now
	cpu, errCPU := largestShare(r.cpu, func(m *meter, used, limit float64) (share float64) {
		if m.known && passed > 0 {
			share = (used - m.last) / passed / limit
		}
		m.last, m.known = used, true
		return share
	})
	memory, errMemory := largestShare(r.memory, func(_ *meter, used, limit float64) float64 { return used / limit })
	return Usage{cpu, memory}, errors.Join(errCPU, errMemory)
}

// largestShare is the largest share of all meters. One that cannot be read is left out: its cgroup may
// have no such controller.
func largestShare(meters []*meter, share func(m *meter, used, limit float64) float64) (largest float64, err error) {
	read := false
	for _, m := range meters {
		used, limit, wrong := m.read()
		if wrong == nil && !(limit > 0) {
			wrong = fmt.Errorf("%s: no limit above 0", m.where)
		}
		if wrong != nil {
			m.known = false
			err = wrong
			continue
		}
		read = true
		largest = math.Max(largest, share(m, used, limit))
	}
	if read {
		return largest, nil
	}
	return 0, fmt.Errorf("pressure: %w", err)
}

// CPU describes the smallest limit, such as "2.0 cores (cgroup v2 /sys/fs/cgroup/x)".
func (r *Reader) CPU() string {
	limit, where := smallest(r.cpu)
	return fmt.Sprintf("%.1f cores (%s)", limit, where)
}

// Memory describes the smallest limit, such as "512 MiB (cgroup v2 /sys/fs/cgroup/x)".
func (r *Reader) Memory() string {
	limit, where := smallest(r.memory)
	return fmt.Sprintf("%.0f MiB (%s)", limit/(1<<20), where)
}

// smallest is the smallest limit, and the nearest of equal ones.
func smallest(meters []*meter) (limit float64, where string) {
	limit = math.Inf(1)
	for _, m := range meters {
		if _, l, err := m.read(); err == nil && l > 0 && l < limit {
			limit, where = l, m.where
		}
	}
	return limit, where
}

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
		used, err = fieldIn(status, "VmRSS:")
		limit, errLimit := fieldIn(info, "MemTotal:")
		return 1024 * used, 1024 * limit, errors.Join(err, errLimit)
	}}
}

// fieldIn reads a number from a file with a name and a number on each line.
func fieldIn(file, name string) (float64, error) {
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

// numberIn reads a file of one number.
func numberIn(file string) (float64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return number(strings.TrimSpace(string(text)))
}

// number reads a whole number. "max" is that there is no limit.
func number(text string) (float64, error) {
	if text == "max" {
		return math.Inf(1), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return float64(n), err
}
