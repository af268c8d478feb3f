package overload

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// machine is a tree of files with a cgroup of 2 cores and 100 MiB.
type machine struct {
	t    *testing.T
	root string
	now  time.Duration
	used time.Duration // CPU
	log  bytes.Buffer
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	name = filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, root: t.TempDir()}
	for name, text := range map[string]string{
		"proc/self/stat":            "7 (weir) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0",
		"proc/self/status":          "VmRSS:\t  1 kB\n",
		"proc/meminfo":              "MemTotal:        1048576 kB\n",
		"proc/self/cgroup":          "0::/\n",
		"proc/self/mountinfo":       "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"sys/fs/cgroup/cpu.max":     "200000 100000\n",
		"sys/fs/cgroup/cpu.stat":    "usage_usec 0\n",
		"sys/fs/cgroup/memory.max":  "104857600\n",
		"sys/fs/cgroup/memory.high": "max\n",
		"sys/fs/cgroup/memory.stat": "inactive_file 0\n",
	} {
		m.write(name, text)
	}
	m.memory(50)
	return m
}

func (m *machine) memory(mib int) {
	m.write("sys/fs/cgroup/memory.current", fmt.Sprint(mib<<20))
}

// pass lets time pass in which so many cores are busy.
func (m *machine) pass(d time.Duration, cores float64) {
	m.now += d
	m.used += time.Duration(cores * float64(d))
	m.write("sys/fs/cgroup/cpu.stat", fmt.Sprintf("usage_usec %d\n", m.used.Microseconds()))
}

func (m *machine) shedder(l Limits, free func()) *Shedder {
	m.t.Helper()
	old := runtime.GOMAXPROCS(16) // so that the cgroup has less
	defer runtime.GOMAXPROCS(old)
	s, err := newShedder(l, m.root, slog.New(slog.NewTextHandler(&m.log, nil)), func() time.Duration { return m.now }, free)
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// ask sends 100 requests of each priority and returns how many are shed.
func ask(s *Shedder) (shed [Priorities]int) {
	for range 100 {
		for c := Low; c <= Critical; c++ {
			if !s.Allow(c) {
				shed[c]++
			}
		}
	}
	return shed
}

// From files to answers: what is over is shed by priority, is counted, and is said.
func TestShedder(t *testing.T) {
	m := newMachine(t)
	s := m.shedder(Limits{CPU: 0.85, Memory: 0.9}, nil)
	if want := `msg="protecting this process" cpu="85 % of 2.0 cores (cgroup v2 /sys/fs/cgroup)" memory="90 % of 100 MiB (cgroup v2 /sys/fs/cgroup)"`; !strings.Contains(m.log.String(), want) {
		t.Errorf("%s", &m.log)
	}
	var sum [Priorities]int
	for range 40 {
		m.pass(every, 1.6)
		if shed := ask(s); shed != ([Priorities]int{}) {
			t.Fatalf("%v at 80 %%", shed)
		}
	}
	next := Low // to be shed
	for range 80 {
		m.pass(every, 2)
		shed := ask(s)
		for c, n := range shed {
			sum[c] += n
			if n > 0 && Priority(c) > next {
				t.Fatalf("%v, but %s was not shed yet", shed, next)
			}
			if n > 0 && Priority(c) == next {
				next++
			}
		}
	}
	if shed := ask(s); shed[Critical] != 0 || shed[High] < 95 || shed[Normal] != 100 || shed[Low] != 100 {
		t.Errorf("%v at the end", shed)
	} else {
		for c, n := range shed {
			sum[c] += n
		}
	}
	stats := s.Stats()
	if math.Abs(stats.CPU-1) > 0.01 || math.Abs(stats.Memory-0.5) > 0.01 {
		t.Errorf("%+v", stats)
	}
	for c, n := range stats.Shed {
		if int(n) != sum[c] {
			t.Errorf("%v were shed, %v are counted", sum, stats.Shed)
		}
	}
	if n := strings.Count(m.log.String(), "requests are shed"); n != 2 || !strings.Contains(m.log.String(), `shed="low `) { // of 20 s
		t.Errorf("%d lines: %s", n, &m.log)
	}
	for range 40 {
		m.pass(every, 1)
		ask(s)
	}
	if shed := ask(s); shed != ([Priorities]int{}) {
		t.Errorf("%v are still shed", shed)
	}
}

// Requests are shed evenly, also those that come at every n-th place.
func TestEvenly(t *testing.T) {
	m := newMachine(t)
	s := m.shedder(Limits{CPU: 0.85}, nil)
	for _, share := range []float64{0.01, 0.3, 0.5, 0.99} {
		s.byPriority[Low].share.Store(of64(share))
		for _, nth := range []int{1, 2, 3, 10} {
			shed := 0
			for range 1000 {
				for i := range nth {
					if !s.Allow(Low) && i == 0 {
						shed++
					}
				}
			}
			if math.Abs(float64(shed)-1000*share) > 10 {
				t.Errorf("%d of 1000 are shed, want %v", shed, 1000*share)
			}
		}
	}
}

// Memory above its limit is first searched for garbage, but not all the time.
func TestGarbage(t *testing.T) {
	m := newMachine(t)
	freed := make(chan bool, 100)
	s := m.shedder(Limits{Memory: 0.9}, func() { freed <- true })
	m.memory(80)
	m.pass(every, 0)
	ask(s)
	m.memory(95)
	m.pass(every, 0)
	ask(s)
	<-freed
	m.memory(50)
	for range 40 {
		m.pass(every, 0)
		ask(s)
	}
	m.memory(95)
	for range 100 { // 25 s more
		m.pass(every, 0)
		ask(s)
	}
	<-freed
	if len(freed) != 0 {
		t.Error("more than every 30 s")
	}
	if shed := ask(s); shed[Low] == 0 || shed[Critical] != 0 {
		t.Errorf("%v at 95 %%", shed)
	}
}

// What cannot be read sheds nothing, and is said once.
func TestUsageCannotBeRead(t *testing.T) {
	m := newMachine(t)
	s := m.shedder(Limits{CPU: 0.85}, nil)
	for _, name := range []string{"sys", "proc"} {
		if err := os.RemoveAll(filepath.Join(m.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		m.now += every
		if shed := ask(s); shed != ([Priorities]int{}) {
			t.Fatalf("%v", shed)
		}
	}
	if n := strings.Count(m.log.String(), "usage cannot be read"); n != 1 {
		t.Errorf("%d lines: %s", n, &m.log)
	}
	if _, err := newShedder(Limits{CPU: 0.85}, m.root, slog.Default(), nil, nil); err == nil {
		t.Error("no error at the start")
	}
}

// This process. Without limits there is no shedder, and it allows everything.
func TestRealShedder(t *testing.T) {
	s, err := NewShedder(Limits{}, nil)
	if s != nil || err != nil || !s.Allow(Low) || s.Stats() != (ShedStats{}) {
		t.Errorf("%v, %v", s, err)
	}
	s, err = NewShedder(Limits{CPU: 1, Memory: 1}, slog.New(slog.DiscardHandler))
	if runtime.GOOS != "linux" {
		if err == nil {
			t.Error("no error")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 10_000 {
				if !s.Allow(Critical) {
					t.Error("a critical request is shed")
				}
				s.Allow(Low)
			}
		})
	}
	all.Wait()
	if n := s.byPriority[Critical].requests.Load(); n != 40_000 {
		t.Error(n)
	}
}

func TestParseLimits(t *testing.T) {
	for text, want := range map[string]Limits{
		"cpu=85%,memory=90%":  {0.85, 0.9},
		" memory = 99.5 % ":   {0, 0.995},
		"cpu=100%":            {1, 0},
		"memory=50%, cpu=70%": {0.7, 0.5},
	} {
		if got, err := ParseLimits(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                      `"" is not cpu or memory; write for example cpu=85%,memory=90%`,
		"disk=3%":               `"disk" is not cpu or memory; write for example cpu=85%,memory=90%`,
		"cpu":                   `cpu: "" is not a percentage above 0% and up to 100%; write for example cpu=85%`,
		"cpu=85":                `cpu: "85" is not a percentage above 0% and up to 100%; write for example cpu=85%`,
		"cpu=0%":                `cpu: "0%" is not a percentage above 0% and up to 100%; write for example cpu=85%`,
		"cpu=NaN%":              `cpu: "NaN%" is not a percentage above 0% and up to 100%; write for example cpu=85%`,
		"memory=101%":           `memory: "101%" is not a percentage above 0% and up to 100%; write for example memory=85%`,
		"cpu=1%,cpu=2%":         "cpu is given twice; write it once",
		strings.Repeat("x", 99): `"` + strings.Repeat("x", 40) + `…" is not cpu or memory; write for example cpu=85%,memory=90%`,
	} {
		if _, err := ParseLimits(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, l := range []Limits{{CPU: -1}, {CPU: 1.1}, {Memory: math.NaN()}, {Memory: 85}} {
		if err := l.Check(); err == nil || !strings.Contains(err.Error(), "it must be a share from 0 to 1") {
			t.Errorf("%v: %v", l, err)
		}
	}
}

func BenchmarkAllow(b *testing.B) {
	s, err := NewShedder(Limits{CPU: 0.99}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Skip(err)
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.Allow(Normal)
		}
	})
}
