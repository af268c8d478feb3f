package hostile

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/build"
	"github.com/weirhq/weir/internal/testkit"
)

// The attacks that once made everybody else fail are made for a moment. Long ones are for make chaos.
func TestAttacks(t *testing.T) {
	program := filepath.Join(t.TempDir(), "weir")
	if out, err := build.Weir("../../..", build.Host, program, "-buildvcs=false").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h, err := testkit.NewScope("hostile")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	var some []Attack
	for _, a := range Attacks() {
		if a.Times <= 200 && !strings.HasPrefix(a.Name, "long stalled") {
			some = append(some, a)
		}
	}
	var outcomes []Outcome
	if err := h.Try(func() {
		outcomes = Run(t.Context(), h, program, 2*time.Second, some, func(string) {})
	}); err != nil {
		t.Fatal(err)
	}
	if len(outcomes) != len(some) {
		t.Errorf("%d of %d attacks were made", len(outcomes), len(some))
	}
	for _, o := range outcomes {
		if o.Requests == 0 || o.Failed > 0 {
			t.Errorf("%+v", o)
		}
	}
}

// A server that one client can keep busy fails.
func TestOutcome(t *testing.T) {
	var busy atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			busy.Store(true)
			<-r.Context().Done()
		} else if busy.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	address := server.Listener.Addr().String()
	c := &Client{Gateway: address, API: address}
	attack := Attack{"hold", 1, func(ctx context.Context, c *Client) { c.send(ctx, c.Gateway, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n") }}
	if o := c.try(t.Context(), attack, 500*time.Millisecond); o.Failed == 0 || !strings.Contains(o.First, "503") || o.Requests < o.Failed {
		t.Errorf("%+v", o)
	}
	if canUse(net.IPv4(192, 0, 2, 1)) {
		t.Error("an address of nobody can be used")
	}
}
