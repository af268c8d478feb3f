package httpapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/rules/manage"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/trust"
)

func newProfiled(t *testing.T) *stand {
	return newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}, Profiles: true}).serve()
}

// A profile is what go tool pprof reads: a compressed message that names what it measures.
func TestProfiles(t *testing.T) {
	s := newProfiled(t)
	for path, measures := range map[string]string{"heap": "inuse_space", "allocs": "alloc_space", "goroutine": "goroutine", "profile?seconds=1": "nanoseconds"} {
		r := s.call("GET /debug/pprof/"+path, "", as(adminToken))
		r.want(t, 200, nil)
		message := string(testkit.Must(io.ReadAll(testkit.Must(gzip.NewReader(bytes.NewReader(r.body)))(t)))(t))
		if !strings.Contains(message, measures) || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: no %s in %d bytes, %v", path, measures, len(message), r.Header)
		}
	}
	s.call("GET /debug/pprof/trace", "", as(adminToken)).wantProblem(t, fault.NotFound)
	for _, query := range []string{"profile?seconds=61", "profile?seconds=0", "profile?seconds=", "profile?second=1", "heap?seconds=1", "heap?debug=1"} {
		s.call("GET /debug/pprof/"+query, "", as(adminToken)).wantProblem(t, fault.BadField)
	}
}

// Only an administrator may, by a token, and only if the operator wants it at all.
func TestWhoMayProfile(t *testing.T) {
	const heap = "GET /debug/pprof/heap"
	s := newProfiled(t)
	s.call(heap, "").wantProblem(t, fault.TokenRequired)
	s.call(heap, "", as(readerToken)).wantProblem(t, fault.Forbidden)
	s.call(heap, "", as("wrong-but-long-enough")).wantProblem(t, fault.InvalidToken)
	session, _ := tokens(t)().Session(adminToken, s.options.Clock().Add(SessionLength))
	s.call(heap, "", "Cookie: "+trust.PlainCookie+"="+session, "Sec-Fetch-Site: same-origin").wantProblem(t, fault.Forbidden)

	s = newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}})
	if r := s.call(heap, "", as(adminToken)); r.StatusCode != http.StatusNotFound {
		t.Errorf("without the option: %d %s", r.StatusCode, r.body)
	}
	s = newStand(t, Options{Profiles: true}) // there are no tokens, and so no administrator
	s.call(heap, "").wantProblem(t, fault.Forbidden)
}

// There is one profile at a time. When who asked for it leaves, the next one may begin.
func TestOneProfile(t *testing.T) {
	s := newProfiled(t)
	ctx, leave := context.WithCancel(t.Context())
	r := testkit.Must(http.NewRequestWithContext(ctx, "GET", s.server.URL+"/debug/pprof/profile?seconds=60", nil))(t)
	r.Header.Set("Authorization", "Bearer "+adminToken)
	left := make(chan error)
	go func() {
		_, err := s.server.Client().Do(r)
		left <- err
	}()
	waitFor(t, s.profiling.Load)
	busy := s.call("GET /debug/pprof/heap", "", as(adminToken))
	busy.wantProblem(t, fault.Busy)
	if busy.Header.Get("Retry-After") == "" {
		t.Error("there is no Retry-After")
	}
	leave()
	if err := <-left; err == nil {
		t.Error("the first profile was answered")
	}
	waitFor(t, func() bool { return !s.profiling.Load() })
	s.call("GET /debug/pprof/heap", "", as(adminToken)).want(t, 200, nil)
}

// A profile does not delay the end of the process.
func TestProfileAtTheEnd(t *testing.T) {
	stopping := make(chan struct{})
	s := newStand(t, Options{Service: manage.Service{Tokens: tokens(t)}, Profiles: true, Stopping: stopping})
	close(stopping)
	s.call("GET /debug/pprof/profile?seconds=60", "", as(adminToken)).wantProblem(t, fault.NotReady)
}
