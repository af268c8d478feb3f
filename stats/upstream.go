package stats

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/tally"
	"github.com/weirhq/weir/stats/archive"
)

// routes count what became of requests that were passed on. That takes much longer
// than a lock.
type routes struct {
	names tally.Names
	mu    sync.Mutex
	frame archive.Frame
}

// ObserveUpstream counts a request that was forwarded, and either answered with a
// status or ended by an error. A request that its client canceled counts as answered.
// The route is a name from the configuration, not a path; a route without a name is
// "(none)".
func (r *Recorder) ObserveUpstream(route string, status int, took time.Duration, err error) {
	s := &r.routes
	route = s.names.Of(route)
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.frame.Route(route)
	to.Requests++
	to.Latency.Record(took)
	if status >= 500 || err != nil && !errors.Is(err, context.Canceled) {
		to.Errors++
	}
}

// take moves what was counted into a frame.
func (s *routes) take(f *archive.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Merge(&s.frame)
	s.frame = archive.Frame{}
}
