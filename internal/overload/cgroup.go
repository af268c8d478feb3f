package overload

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxDepth is how many cgroups are looked at, one above the other.
const maxDepth = 32

// cgroups finds the meters of the process's cgroups, from its own upwards. There are none without
// cgroups.
func cgroups(root string) (cpu, memory []*meter) {
	own, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil, nil
	}
	info, err := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return nil, nil
	}
	paths, mounts := memberships(string(own)), mountsOf(string(info))
	// A controller of v1 is not one of v2.
	if p, v1 := paths["cpu"]; v1 {
		if paths["cpuacct"] == p { // otherwise, what is counted is not what is limited
			limits, usages := mounts.chain("cpu", p), mounts.chain("cpuacct", p)
			for i := range min(len(limits), len(usages)) {
				cpu = append(cpu, oldCPU(root, limits[i], usages[i]))
			}
		}
	} else if p, v2 := paths[""]; v2 {
		for _, dir := range mounts.chain("", p) {
			cpu = append(cpu, newCPU(root, dir))
		}
	}
	if p, v1 := paths["memory"]; v1 {
		for _, dir := range mounts.chain("memory", p) {
			memory = append(memory, oldMemory(root, dir))
		}
	} else if p, v2 := paths[""]; v2 {
		for _, dir := range mounts.chain("", p) {
			memory = append(memory, newMemory(root, dir))
		}
	}
	return cpu, memory
}

// memberships are the paths of the process's cgroups by controller, "" for v2.
func memberships(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) { // 4:cpu,cpuacct:/a/b
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) < 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			all[controller] = path.Clean("/" + parts[2])
		}
	}
	return all
}

// mount is a hierarchy of cgroups in the file system.
type mount struct {
	v2          bool
	controllers []string
	root        string // the cgroup that the point shows
	point       string
}

type mounts []mount

func mountsOf(text string) (all mounts) {
	for line := range strings.Lines(text) { // 32 31 0:29 /root /point rw - cgroup cgroup rw,cpu
		left, right, found := strings.Cut(line, " - ")
		about, kind := strings.Fields(left), strings.Fields(right)
		if !found || len(about) < 5 || len(kind) < 3 || kind[0] != "cgroup" && kind[0] != "cgroup2" {
			continue
		}
		all = append(all, mount{
			v2: kind[0] == "cgroup2", controllers: strings.Split(kind[2], ","),
			root: unescape(about[3]), point: unescape(about[4]),
		})
	}
	return all
}

// unescape undoes \040 for a blank, and others.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+4 <= len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// chain are the folders of a cgroup and of all above it, as far as they are mounted.
func (all mounts) chain(controller, cgroup string) (dirs []string) {
	for _, m := range all {
		if m.v2 != (controller == "") || !m.v2 && !slices.Contains(m.controllers, controller) {
			continue
		}
		// Within a container, the mount usually begins at the container's own cgroup.
		below, found := strings.CutPrefix(cgroup, strings.TrimSuffix(m.root, "/"))
		if !found || below != "" && below[0] != '/' {
			below = ""
		}
		for range maxDepth {
			dirs = append(dirs, path.Join(m.point, below))
			if below == "" || below == "/" {
				return dirs
			}
			below = path.Dir(below)
		}
		return dirs
	}
	return nil
}

func newCPU(root, dir string) *meter {
	inside := filepath.Join(root, dir)
	return &meter{where: "cgroup v2 " + dir, read: func() (used, limit float64, err error) {
		text, err := os.ReadFile(filepath.Join(inside, "cpu.max")) // "max 100000", or "200000 100000"
		if err != nil {
			return 0, 0, err
		}
		quota, period, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
		cores, errQuota := number(quota)
		each, errPeriod := number(period)
		used, err = fieldIn(filepath.Join(inside, "cpu.stat"), "usage_usec")
		return used / 1e6, cores / each, errors.Join(errQuota, errPeriod, err)
	}}
}

func oldCPU(root, limits, usages string) *meter {
	return &meter{where: "cgroup v1 " + limits, read: func() (used, limit float64, err error) {
		quota, err := numberIn(filepath.Join(root, limits, "cpu.cfs_quota_us"))
		period, errPeriod := numberIn(filepath.Join(root, limits, "cpu.cfs_period_us"))
		if limit = math.Inf(1); quota >= 0 { // -1 is none
			limit = quota / period
		}
		used, errUsed := numberIn(filepath.Join(root, usages, "cpuacct.usage"))
		return used / 1e9, limit, errors.Join(err, errPeriod, errUsed)
	}}
}

func newMemory(root, dir string) *meter {
	inside := filepath.Join(root, dir)
	return &meter{where: "cgroup v2 " + dir, read: func() (used, limit float64, err error) {
		limit, err = numberIn(filepath.Join(inside, "memory.max"))
		slow, errSlow := numberIn(filepath.Join(inside, "memory.high")) // above which everything gets slow
		used, errUsed := withoutCache(inside, "memory.current", "inactive_file")
		return used, math.Min(limit, slow), errors.Join(err, errSlow, errUsed)
	}}
}

func oldMemory(root, dir string) *meter {
	inside := filepath.Join(root, dir)
	return &meter{where: "cgroup v1 " + dir, read: func() (used, limit float64, err error) {
		limit, err = numberIn(filepath.Join(inside, "memory.limit_in_bytes")) // without one, it is huge
		used, errUsed := withoutCache(inside, "memory.usage_in_bytes", "total_inactive_file")
		return used, limit, errors.Join(err, errUsed)
	}}
}

// withoutCache is the memory in use, without files that the kernel has read and can forget.
func withoutCache(inside, usage, cache string) (float64, error) {
	used, err := numberIn(filepath.Join(inside, usage))
	if err != nil {
		return 0, err
	}
	files, err := fieldIn(filepath.Join(inside, "memory.stat"), cache)
	if err != nil {
		return 0, fmt.Errorf("cgroup: %w", err)
	}
	return math.Max(0, used-files), nil
}
