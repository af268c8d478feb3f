package run

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/chaos/check"
	"github.com/weirhq/weir/test/chaos/plan"
)

// instance is a weir, which may be ended and started again.
type instance struct {
	number int
	path   string // of the program
	args   []string
	log    string
	now    func() time.Duration
	line   *check.Timeline

	mu      sync.Mutex
	process *testkit.Child
	base    string // the address of the API
	life    int    // how often it has been started
}

// farewell is how long a weir that is told to stop may take.
const farewell = 30 * time.Second

var listening = regexp.MustCompile(`(?m)^weir listens on (\S+)`)

// start starts it, and returns when it listens.
func (i *instance) start() error {
	process, err := testkit.Start(i.path, i.args, i.log)
	if err != nil {
		return err
	}
	i.mu.Lock()
	i.process = process
	i.mu.Unlock()
	found, err := process.Await(listening)
	if err != nil {
		return err
	}
	i.mu.Lock()
	i.base, i.life = found[1], i.life+1
	i.mu.Unlock()
	i.line.Ready(i.number, i.now())
	return nil
}

// end ends it at once, or as an operator would. Whatever is asked from here on may be lost.
func (i *instance) end(atOnce bool) {
	i.line.Down(i.number, check.Span{From: i.now(), To: check.Open})
	if atOnce {
		i.process.Kill()
		return
	}
	i.process.Signal(syscall.SIGTERM)
	select {
	case <-i.process.Done():
	case <-time.After(farewell):
		i.process.Kill()
	}
}

// pid is the number of the process that runs, or that ran last.
func (i *instance) pid() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.process.PID()
}

// at is where it listens, and in which life.
func (i *instance) at() (base string, life int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.base, i.life
}

// sample reads from its metrics how large it is.
func (i *instance) sample() (check.Sample, error) {
	base, life := i.at()
	s := check.Sample{At: i.now(), Instance: i.number, Life: life}
	response, err := http.Get(base + "/metrics")
	if err != nil {
		return s, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		value, _ := strconv.ParseFloat(text, 64)
		switch name {
		case `weir_lease_checks_total{how="local"}`:
			s.Local = int64(value)
		case "go_goroutines":
			s.Goroutines = int(value)
		case "process_resident_memory_bytes":
			s.Resident = int64(value)
		}
	}
	if s.Goroutines == 0 {
		return s, fmt.Errorf("%s/metrics says nothing of goroutines", base)
	}
	return s, lines.Err()
}

// startFleet starts instances that share a store and a document of rules, with more arguments.
func startFleet(h *testkit.Scope, program, store, rules string, now func() time.Duration, line *check.Timeline, more ...string) []*instance {
	dir := h.TempDir()
	file := filepath.Join(dir, "rules.yaml")
	testkit.OK(h, os.WriteFile(file, []byte(rules), 0o600))
	var fleet []*instance
	for n := range plan.Instances {
		i := &instance{number: n, path: program, log: filepath.Join(dir, fmt.Sprintf("weir%d.log", n)), now: now, line: line,
			args: append([]string{"serve", "--rules", file, "--store", store, "--instances", strconv.Itoa(plan.Instances), "--http", "127.0.0.1:0", "--grpc", "off", "--log-level", "warn"}, more...)}
		line.Down(n, check.Span{From: 0, To: check.Open})
		testkit.OK(h, i.start())
		h.Cleanup(func() { i.process.Kill() })
		fleet = append(fleet, i)
	}
	return fleet
}
