package stats

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/weirhq/weir/stats/archive"
)

// routes count what became of requests that were passed on. That takes much longer
// than a lock.
type routes struct {
	most  int
	mu    sync.Mutex
	known map[string]bool
	frame archive.Frame
}

// maxRoute is the longest name of a route, in bytes.
const maxRoute = 200

// ObserveUpstream counts a request that was forwarded, and either answered with a
// status or ended by an error. A request that its client canceled counts as answered.
// The route is a name from the configuration, not a path; a route without a name is
// "(none)".
func (r *Recorder) ObserveUpstream(route string, status int, took time.Duration, err error) {
	route = cmp.Or(route, "(none)")
	s := &r.routes
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known[route] {
		if len(s.known) >= s.most || len(route) > maxRoute || !utf8.ValidString(route) {
			route = archive.Other
		} else {
			s.known[route] = true
		}
	}
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
