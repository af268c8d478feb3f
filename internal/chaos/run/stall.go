package run

import (
	"context"
	"os"
	"time"

	"github.com/weirhq/weir/internal/chaos/check"
)

// What the machine cannot do in time is no fault of weir's. Two things measure that: how late
// this process wakes up, and for how long threads were ready to run and had no core.
const (
	watchdogEvery = 5 * time.Millisecond
	starvedEvery  = 20 * time.Millisecond
	noise         = 5 * time.Millisecond // less is not worth a note
)

// watchdog tells the timeline how late this process wakes up.
func (s *scene) watchdog(ctx context.Context) {
	for ctx.Err() == nil {
		due := s.now() + watchdogEvery
		time.Sleep(watchdogEvery)
		if at := s.now(); at-due > noise {
			s.line.Stalled(check.Everybody, check.Span{From: due, To: at})
		}
	}
}

// watchCores tells the timeline who had to wait for a core: an instance, or if it is this
// process or Redis, everybody.
func (s *scene) watchCores(ctx context.Context) {
	var waited starved
	tick := time.NewTicker(starvedEvery)
	defer tick.Stop()
	for last := s.now(); ctx.Err() == nil; <-tick.C {
		now := s.now()
		middle := (now - last) / 2 // it was at some time since the last look
		last = now
		for pid, who := range s.processes() {
			if d := waited.since(pid); d > noise {
				s.line.Stalled(who, check.Span{From: now - middle - d, To: now - middle})
			}
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

// starved remembers how long threads had waited for a core.
type starved struct {
	before, seen map[string]time.Duration // by the path of the thread
}

// since is the longest time that any thread of a process has waited since it was last asked.
func (s *starved) since(pid int) (longest time.Duration) {
	if s.seen == nil {
		s.seen = map[string]time.Duration{}
	}
	for thread, waited := range waits(pid) {
		s.seen[thread] = waited
		if before, ok := s.before[thread]; ok {
			longest = max(longest, waited-before)
		}
	}
	return longest
}

// forget forgets threads that have ended.
func (s *starved) forget() { s.before, s.seen = s.seen, nil }
