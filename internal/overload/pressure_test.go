package overload

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// tree writes files, and returns their folder.
func tree(t *testing.T, files ...map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for _, some := range files {
		plant(t, root, some)
	}
	return root
}

func plant(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// process is what every Linux has: 1 GiB, of which the process has a quarter, and 2 s of CPU.
var process = map[string]string{
	"proc/self/stat":   "7 (a b) c) S 1 7 7 0 -1 0 0 0 0 0 150 50 0 0 20 0 5 0 100",
	"proc/self/status": "Name:\tweir\nVmRSS:\t  262144 kB\n",
	"proc/meminfo":     "MemTotal:        1048576 kB\nMemFree:  5 kB\n",
}

const (
	mountV2   = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	unlimited = "9223372036854771712\n"
)

// v2 is a cgroup of 2 cores and 100 MiB in one of 4 cores and 80 MiB.
var v2 = map[string]string{
	"proc/self/cgroup":    "0::/a.slice/b.service\n",
	"proc/self/mountinfo": "22 1 8:1 / / rw - ext4 /dev/sda rw\n" + mountV2,

	"sys/fs/cgroup/cpu.stat": "usage_usec 9\n", // the root of all has no limits

	"sys/fs/cgroup/a.slice/cpu.max":        "400000 100000\n",
	"sys/fs/cgroup/a.slice/cpu.stat":       "usage_usec 6000000\nuser_usec 1\n",
	"sys/fs/cgroup/a.slice/memory.max":     "83886080\n",
	"sys/fs/cgroup/a.slice/memory.high":    "max\n",
	"sys/fs/cgroup/a.slice/memory.current": "62914560\n",
	"sys/fs/cgroup/a.slice/memory.stat":    "anon 1\ninactive_file 20971520\n",

	"sys/fs/cgroup/a.slice/b.service/cpu.max":        "200000 100000\n",
	"sys/fs/cgroup/a.slice/b.service/cpu.stat":       "usage_usec 3000000\n",
	"sys/fs/cgroup/a.slice/b.service/memory.max":     "104857600\n",
	"sys/fs/cgroup/a.slice/b.service/memory.high":    "max\n",
	"sys/fs/cgroup/a.slice/b.service/memory.current": "31457280\n",
	"sys/fs/cgroup/a.slice/b.service/memory.stat":    "anon 1\ninactive_file 0\n",
}

// v1 is a container: the mounts begin at its own cgroups. CPU is in a folder with another name.
var v1 = map[string]string{
	"proc/self/cgroup": "5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/docker/x\n0::/\n",
	"proc/self/mountinfo": "40 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" +
		"32 31 0:29 /docker/x /sys/fs/cgroup/cpu\\040and\\040more rw,relatime master:1 - cgroup cgroup rw,cpu,cpuacct\n" +
		"35 31 0:32 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",

	"sys/fs/cgroup/cpu and more/cpu.cfs_quota_us":  "50000\n",
	"sys/fs/cgroup/cpu and more/cpu.cfs_period_us": "100000\n",
	"sys/fs/cgroup/cpu and more/cpuacct.usage":     "1000000000\n",
	"sys/fs/cgroup/memory/memory.limit_in_bytes":   "104857600\n",
	"sys/fs/cgroup/memory/memory.usage_in_bytes":   "94371840\n",
	"sys/fs/cgroup/memory/memory.stat":             "inactive_file 1\ntotal_inactive_file 20971520\n",
}

func with(files map[string]string, name, text string) map[string]string {
	files = maps.Clone(files)
	files[name] = text
	return files
}

func TestRead(t *testing.T) {
	cores := fmt.Sprintf("%.1f cores (this process)", float64(runtime.GOMAXPROCS(0)))
	const own = "sys/fs/cgroup/a.slice/b.service/"
	for _, c := range []struct {
		name        string
		files       map[string]string
		then        map[string]string // a second later
		cpu, memory string
		want        Usage
	}{
		{name: "none", cpu: cores, memory: "1024 MiB (this machine)",
			then: map[string]string{"proc/self/stat": "7 (a) S 1 7 7 0 -1 0 0 0 0 0 170 80 0 0"},
			want: Usage{CPU: 0.5 / float64(runtime.GOMAXPROCS(0)), Memory: 0.25}},
		// 1.5 s of 2 cores are more than 2 s of 4; 40 of 80 MiB are more than 30 of 100.
		{name: "v2", files: v2, cpu: "2.0 cores (cgroup v2 /sys/fs/cgroup/a.slice/b.service)", memory: "80 MiB (cgroup v2 /sys/fs/cgroup/a.slice)",
			then: map[string]string{own + "cpu.stat": "usage_usec 4500000\n", "sys/fs/cgroup/a.slice/cpu.stat": "usage_usec 8000000\n"},
			want: Usage{CPU: 0.75, Memory: 0.5}},
		// The cgroup above has others in it, which use its 4 cores up.
		{name: "v2 above", files: v2, cpu: "2.0 cores (cgroup v2 /sys/fs/cgroup/a.slice/b.service)", memory: "80 MiB (cgroup v2 /sys/fs/cgroup/a.slice)",
			then: map[string]string{own + "memory.current": "94371840\n", "sys/fs/cgroup/a.slice/cpu.stat": "usage_usec 10000000\n"},
			want: Usage{CPU: 1, Memory: 0.9}},
		{name: "v2 high", files: with(v2, own+"memory.high", "52428800\n"), cpu: "2.0 cores (cgroup v2 /sys/fs/cgroup/a.slice/b.service)", memory: "50 MiB (cgroup v2 /sys/fs/cgroup/a.slice/b.service)",
			want: Usage{Memory: 0.6}},
		// In a namespace of its own, a container does not see where its cgroup is.
		{name: "v2 in a namespace", files: map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
			"sys/fs/cgroup/cpu.max": "150000 100000\n", "sys/fs/cgroup/cpu.stat": "usage_usec 0\n",
		}, cpu: "1.5 cores (cgroup v2 /sys/fs/cgroup)", memory: "1024 MiB (this machine)",
			then: map[string]string{"sys/fs/cgroup/cpu.stat": "usage_usec 900000\n"},
			want: Usage{CPU: 0.6, Memory: 0.25}},
		{name: "v2 elsewhere", files: with(with(v2, "proc/self/cgroup", "0::/../other\n"), "proc/self/mountinfo", "30 23 0:26 /../.. /sys/fs/cgroup/a.slice rw - cgroup2 cgroup2 rw\n"),
			cpu: "4.0 cores (cgroup v2 /sys/fs/cgroup/a.slice)", memory: "80 MiB (cgroup v2 /sys/fs/cgroup/a.slice)",
			want: Usage{Memory: 0.5}},
		{name: "v2 raised", files: v2, cpu: "2.0 cores (cgroup v2 /sys/fs/cgroup/a.slice/b.service)", memory: "80 MiB (cgroup v2 /sys/fs/cgroup/a.slice)",
			then: map[string]string{own + "cpu.max": "1000000 100000\n", own + "cpu.stat": "usage_usec 4500000\n", "sys/fs/cgroup/a.slice/memory.max": "max\n"},
			want: Usage{CPU: 0.15, Memory: 0.3}},
		{name: "v1", files: v1, cpu: "0.5 cores (cgroup v1 /sys/fs/cgroup/cpu and more)", memory: "100 MiB (cgroup v1 /sys/fs/cgroup/memory)",
			then: map[string]string{"sys/fs/cgroup/cpu and more/cpuacct.usage": "1400000000\n"},
			want: Usage{CPU: 0.8, Memory: 0.7}},
		{name: "v1 without limits", files: with(with(v1, "sys/fs/cgroup/memory/memory.limit_in_bytes", unlimited), "sys/fs/cgroup/cpu and more/cpu.cfs_quota_us", "-1\n"),
			cpu: cores, memory: "1024 MiB (this machine)",
			then: map[string]string{"sys/fs/cgroup/cpu and more/cpuacct.usage": "9400000000\n"},
			want: Usage{Memory: 0.25}},
		// Counted and limited are different processes, so nothing can be said.
		{name: "v1 apart", files: with(v1, "proc/self/cgroup", "5:memory:/docker/x\n4:cpu:/docker/x\n3:cpuacct:/\n"), cpu: cores, memory: "100 MiB (cgroup v1 /sys/fs/cgroup/memory)",
			then: map[string]string{"sys/fs/cgroup/cpu and more/cpuacct.usage": "9400000000\n"},
			want: Usage{Memory: 0.7}},
		{name: "damaged", files: with(with(with(v2, own+"cpu.max", "x y\n"), own+"memory.max", "-\n"), "sys/fs/cgroup/a.slice/memory.stat", ""),
			cpu: "4.0 cores (cgroup v2 /sys/fs/cgroup/a.slice)", memory: "1024 MiB (this machine)",
			then: map[string]string{"sys/fs/cgroup/a.slice/cpu.stat": "usage_usec 8000000\n"},
			want: Usage{CPU: 0.5, Memory: 0.25}},
		{name: "zeros", files: with(with(v2, own+"cpu.max", "0 0\n"), "sys/fs/cgroup/a.slice/cpu.max", ""),
			cpu: cores, memory: "80 MiB (cgroup v2 /sys/fs/cgroup/a.slice)",
			want: Usage{Memory: 0.5}},
		{name: "damaged lists", files: with(with(v2, "proc/self/cgroup", "0:\nx"), "proc/self/mountinfo", " - cgroup2\n1 - cgroup2 x y\n"+strings.Repeat("\\0", 9)),
			cpu: cores, memory: "1024 MiB (this machine)", want: Usage{Memory: 0.25}},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Whoever runs this may have a hundred cores or one.
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
			root := tree(t, process, c.files)
			r, err := OpenReader(root)
			if err != nil {
				t.Fatal(err)
			}
			if c.cpu != cores {
				runtime.GOMAXPROCS(16)
			}
			if r.CPU() != c.cpu || r.Memory() != c.memory {
				t.Errorf("%s and %s, want %s and %s", r.CPU(), r.Memory(), c.cpu, c.memory)
			}
			plant(t, root, c.then)
			got, err := r.Read(time.Second)
			if err != nil || !(math.Abs(got.CPU-c.want.CPU) < 1e-9 && math.Abs(got.Memory-c.want.Memory) < 1e-9) {
				t.Errorf("%+v, want %+v (%v)", got, c.want, err)
			}
		})
	}
}

// Without /proc there is nothing to read, as on other systems.
func TestNothingToRead(t *testing.T) {
	if _, err := OpenReader(tree(t)); err == nil || !strings.Contains(err.Error(), "CPU and memory can be read on Linux only") {
		t.Error(err)
	}
	root := tree(t, process)
	r, err := OpenReader(root)
	if err != nil {
		t.Fatal(err)
	}
	plant(t, root, map[string]string{"proc/self/stat": "7 (a", "proc/meminfo": "MemTotal:\n"})
	if u, err := r.Read(time.Second); err == nil || u != (Usage{}) {
		t.Errorf("%+v, %v", u, err)
	}
	plant(t, root, process)
	plant(t, root, map[string]string{"proc/self/stat": "7 (a) S 1 7 7 0 -1 0 0 0 0 0 9170 80 0 0"}) // it does not count what was missed
	if u, err := r.Read(2 * time.Second); err != nil || u != (Usage{Memory: 0.25}) {
		t.Errorf("%+v, %v", u, err)
	}
}

// This process, on this machine.
func TestReal(t *testing.T) {
	if runtime.GOOS != "linux" {
		if _, err := OpenReader("/"); err == nil {
			t.Error("no error")
		}
		return
	}
	r, err := OpenReader("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, %s", r.CPU(), r.Memory())
	began := time.Now()
	for n := 0; ; n++ { // until it has used some CPU time that can be seen
		u, err := r.Read(time.Since(began))
		if err != nil || u.Memory <= 0 || u.Memory > 1 {
			t.Fatalf("%+v, %v", u, err)
		}
		if u.CPU > 0 {
			break
		}
	}
}
