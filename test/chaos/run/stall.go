package run

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/test/chaos/check"
)

// Delays of the machine are not faults of weir. Three measurements show them: how long a
// trivial request takes, how long threads were ready to run but had no core, and how long the
// host of a virtual machine took a core away.
const (
	echoEvery    = 10 * time.Millisecond
	starvedEvery = 40 * time.Millisecond
	noise        = 5 * time.Millisecond // less is not worth a note
)

// watchEcho tells the timeline when an answer is late that needs no weir and no store. No time is
// between what it measures: the machine may stall while it takes a note, too.
func (s *scene) watchEcho(ctx context.Context) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for last := s.now(); ctx.Err() == nil; {
		if response, err := client.Post(server.URL, "application/json", strings.NewReader("{}")); err == nil {
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		at := s.now()
		if at-last > noise {
			s.line.Stalled(check.Everybody, check.Span{From: last, To: at})
		}
		due := at + echoEvery
		time.Sleep(echoEvery)
		if last = s.now(); last-due > noise {
			s.line.Stalled(check.Everybody, check.Span{From: due, To: last})
		}
	}
}

// watchCores tells the timeline who had to wait for a core: an instance, or if it is this
// process or Redis, everybody.
func (s *scene) watchCores(ctx context.Context) {
	var waited starved
	last := s.now()
	for tick := time.Tick(starvedEvery); ctx.Err() == nil; <-tick {
		now := s.now()
		middle := (now - last) / 2 // it was at some time since the last look
		last = now
		for pid, who := range s.processes() {
			if d := waited.since(waits(pid)); d > noise {
				s.line.Stalled(who, check.Span{From: now - middle - d, To: now - middle})
			}
		}
		// It is counted in ticks of 10 ms, so less than two may be next to nothing.
		if d := waited.since(stolen()); d >= check.Hiccup {
			s.line.Stalled(check.Everybody, check.Span{From: now - middle - d, To: now - middle})
		}
		waited.forget()
	}
}

// processes are all that must run for an answer, and whom they keep waiting.
func (s *scene) processes() map[int]int {
	who := map[int]int{os.Getpid(): check.Everybody}
	for _, server := range s.store.servers() {
		who[server.PID()] = check.Everybody
	}
	for _, i := range s.fleet {
		who[i.pid()] = i.number
	}
	return who
}

// starved remembers how long threads had waited for a core, and how long cores were taken away.
type starved struct {
	before, seen map[string]time.Duration // by the path of the thread, or the name of the core
}

// since is the longest time that any of these has waited since it was last asked.
func (s *starved) since(all map[string]time.Duration) (longest time.Duration) {
	if s.seen == nil {
		s.seen = map[string]time.Duration{}
	}
	for name, waited := range all {
		s.seen[name] = waited
		if before, ok := s.before[name]; ok {
			longest = max(longest, waited-before)
		}
	}
	return longest
}

// forget forgets threads that have ended.
func (s *starved) forget() { s.before, s.seen = s.seen, nil }

// waits is for how long each thread of a process has been ready to run without a core. Only Linux
// knows; elsewhere the echo must do.
func waits(pid int) map[string]time.Duration {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	found := make(map[string]time.Duration, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		var ran, waited time.Duration
		if _, failed := fmt.Sscan(string(text), &ran, &waited); err == nil && failed == nil {
			found[file] = waited
		}
	}
	return found
}

// stolen is for how long the host of this virtual machine has run something else on each core.
func stolen() map[string]time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil
	}
	const column, tick = 8, 10 * time.Millisecond
	found := map[string]time.Duration{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) <= column || fields[0] == "cpu" || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		if ticks, err := strconv.Atoi(fields[column]); err == nil {
			found[fields[0]] = time.Duration(ticks) * tick
		}
	}
	return found
}
