package overload

import (
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Limits are shares of CPU and memory above which requests are shed. 0 is no limit.
type Limits struct{ CPU, Memory float64 }

// Check says what is wrong with limits, and how to correct it.
func (l Limits) Check() error {
	for _, part := range []struct {
		name  string
		value float64
	}{{"CPU", l.CPU}, {"Memory", l.Memory}} {
		if !(part.value >= 0 && part.value <= 1) {
			return fmt.Errorf("%s is %v; it must be a share from 0 to 1, for example 0.85, or 0 for no limit", part.name, part.value)
		}
	}
	return nil
}

// ParseLimits reads limits such as "cpu=85%,memory=90%".
func ParseLimits(text string) (l Limits, err error) {
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		var at *float64
		switch name {
		case "cpu":
			at = &l.CPU
		case "memory":
			at = &l.Memory
		default:
			return Limits{}, fmt.Errorf("%q is not cpu or memory; write for example cpu=85%%,memory=90%%", clip(name))
		}
		if *at != 0 {
			return Limits{}, fmt.Errorf("%s is given twice; write it once", name)
		}
		digits, percent := strings.CutSuffix(value, "%")
		n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || !percent || !(n > 0 && n <= 100) {
			return Limits{}, fmt.Errorf("%s: %q is not a percentage above 0%% and up to 100%%; write for example %s=85%%", name, clip(value), name)
		}
		*at = n / 100
	}
	return l, nil
}

// clip keeps an error to a line.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

const (
	// every is how often the usage is read, at most.
	every = 250 * time.Millisecond

	// collect is how often memory above its limit is searched for garbage, at most.
	collect = 30 * time.Second

	// quiet is how long the log does not repeat that requests are shed.
	quiet = 10 * time.Second
)

// Shedder decides which requests are shed. It is safe for concurrent use.
//
// It has no goroutine: the first request after some time reads the usage. Without requests,
// there is nothing to shed. So a shedder needs no end.
type Shedder struct {
	limits Limits
	logger *slog.Logger
	now    func() time.Duration
	free   func() // gives memory back to the system

	due        atomic.Int64 // when to read again
	byPriority [Priorities]counts

	mu         sync.Mutex
	reader     *Reader
	controller *controller
	before     [Priorities]uint64 // requests at the last reading
	updated    time.Duration      // when that was
	collected  time.Duration
	logged     time.Duration // when the log was told that requests are shed
	failed     bool          // the log was told that the usage cannot be read
}

// counts are those of a priority.
type counts struct {
	requests atomic.Uint64
	shed     atomic.Uint64
	share    atomic.Uint64 // to shed, of 2^64
}

// NewShedder returns a shedder for this process, or nil without limits. It fails if CPU and memory
// cannot be read here. Logger gets a line about what was found, and when requests are shed.
func NewShedder(l Limits, logger *slog.Logger) (*Shedder, error) {
	began := time.Now()
	return newShedder(l, "/", logger, func() time.Duration { return time.Since(began) }, debug.FreeOSMemory)
}

func newShedder(l Limits, root string, logger *slog.Logger, now func() time.Duration, free func()) (*Shedder, error) {
	if l == (Limits{}) {
		return nil, nil
	}
	if err := l.Check(); err != nil {
		return nil, err
	}
	r, err := OpenReader(root)
	if err != nil {
		return nil, err
	}
	s := &Shedder{limits: l, logger: logger, now: now, free: free, reader: r, controller: newController(l)}
	s.collected, s.logged = -collect, -quiet
	s.updated = now()
	s.due.Store(int64(s.updated + every))
	var about []any
	if l.CPU > 0 {
		about = append(about, "cpu", describe(l.CPU, r.CPU()))
	}
	if l.Memory > 0 {
		about = append(about, "memory", describe(l.Memory, r.Memory()))
	}
	logger.Info("protecting this process", about...)
	return s, nil
}

func describe(share float64, of string) string { return fmt.Sprintf("%.4g %% of %s", 100*share, of) }

// Allow reports whether a request may go on. A nil shedder allows all.
func (s *Shedder) Allow(p Priority) bool {
	if s == nil {
		return true
	}
	if now := s.now(); int64(now) >= s.due.Load() {
		s.update(now)
	}
	counts := &s.byPriority[p]
	n := counts.requests.Add(1)
	share := counts.share.Load()
	// Multiples of the golden ratio spread evenly, also those of every tenth request.
	if share == 0 || n*0x9E3779B97F4A7C15 >= share {
		return true
	}
	counts.shed.Add(1)
	return false
}

// update reads the usage, if nobody else does.
func (s *Shedder) update(now time.Duration) {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	if int64(now) < s.due.Load() {
		return
	}
	s.due.Store(int64(now + every))
	u, err := s.reader.Read(now)
	if failed := err != nil; failed != s.failed {
		if s.failed = failed; failed {
			s.logger.Warn("usage cannot be read", "error", err.Error())
		}
	}
	var requests Shares
	for i := range s.byPriority {
		n := s.byPriority[i].requests.Load()
		requests[i] = float64(n - s.before[i])
		s.before[i] = n
	}
	shed := s.controller.update(u, requests, now-s.updated)
	s.updated = now
	for i, share := range shed {
		s.byPriority[i].share.Store(of64(share))
	}
	s.logShed(now, shed)
	if s.limits.Memory > 0 && u.Memory > s.limits.Memory && now-s.collected >= collect {
		s.collected = now
		go s.free() // a part of it may be garbage
	}
}

// of64 is a share of 2^64.
func of64(share float64) uint64 {
	switch {
	case share <= 0:
		return 0
	case share >= 1:
		return math.MaxUint64
	}
	return uint64(share * (1 << 64))
}

// logShed writes to the log from time to time.
func (s *Shedder) logShed(now time.Duration, shed Shares) {
	if shed == (Shares{}) || now-s.logged < quiet {
		return
	}
	s.logged = now
	var priorities []string
	for i, share := range shed {
		if share > 0 {
			priorities = append(priorities, fmt.Sprintf("%s %.0f %%", Priority(i), 100*share))
		}
	}
	u := s.controller.usage
	s.logger.Warn("requests are shed", "shed", strings.Join(priorities, ", "), "cpu", fmt.Sprintf("%.0f %%", 100*u.CPU), "memory", fmt.Sprintf("%.0f %%", 100*u.Memory))
}

// ShedStats says what is used, and how many requests were shed.
type ShedStats struct {
	CPU, Memory float64            // usage of what there is, smoothed
	Shed        [Priorities]uint64 // requests since the start
}

// Stats returns the usage, and how many requests were shed.
func (s *Shedder) Stats() (stats ShedStats) {
	if s == nil {
		return stats
	}
	if now := s.now(); int64(now) >= s.due.Load() {
		s.update(now)
	}
	s.mu.Lock()
	stats.CPU, stats.Memory = s.controller.usage.CPU, s.controller.usage.Memory
	s.mu.Unlock()
	for i := range s.byPriority {
		stats.Shed[i] = s.byPriority[i].shed.Load()
	}
	return stats
}
