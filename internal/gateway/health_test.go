package gateway

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// An upstream that says it is not well gets no requests until it says otherwise.
func TestHealth(t *testing.T) {
	var sick atomic.Bool
	var served atomic.Int64
	weak := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/healthz":
			served.Add(1)
		case sick.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	b := newStand(t, setup{options: Options{Health: Health{Path: "/healthz", Interval: time.Millisecond, Timeout: patience, Threshold: 2}}}, "/weak="+weak, weak+","+upstream(t, saying("strong")))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.Run(ctx) }()
	o := b.table.origins[0]

	sick.Store(true)
	waitFor(t, "the upstream is found not to be well", o.down.Load)
	if b.Ready() == nil {
		t.Error("the gateway is ready, although a route has no available upstream")
	}
	before := served.Load()
	for range 10 {
		if got := b.get("/"); got.body != "strong" {
			t.Errorf("answered by somebody else: %q", got.body)
		}
	}
	if served.Load() != before {
		t.Error("requests went to an upstream that is not well")
	}
	if got := b.get("/weak"); got.StatusCode != 200 || served.Load() != before+1 {
		t.Errorf("the only upstream of a route was not tried: %d", got.StatusCode)
	}

	sick.Store(false)
	waitFor(t, "the upstream is found to be well", func() bool { return !o.down.Load() })
	if err := b.Ready(); err != nil {
		t.Errorf("ready: %v", err)
	}
	waitFor(t, "it gets requests again", func() bool { b.get("/"); <-b.outcomes; return served.Load() > before+1 })

	// When the health checks end, no upstream stays excluded.
	sick.Store(true)
	waitFor(t, "the upstream is found not to be well", o.down.Load)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if o.down.Load() {
		t.Error("it is still left out")
	}
}

// A health check also finds out that an upstream which could not be reached is back.
func TestHealthEndsBackoff(t *testing.T) {
	b := newStand(t, setup{options: Options{Backoff: time.Hour, Health: Health{Path: "/", Interval: time.Millisecond, Timeout: patience}}}, upstream(t, saying("ok"))+","+upstream(t, saying("ok")))
	o := b.table.origins[0]
	o.failed(b.now(), time.Hour, false, b.options.Logger, errRefused)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.Run(ctx) }()
	waitFor(t, "it is back", func() bool { return o.well(b.now()) })
	cancel()
	<-ended
}

// Without a path to ask for, nothing is asked.
func TestRunWithoutHealth(t *testing.T) {
	b := newStand(t, setup{}, upstream(t, func(http.ResponseWriter, *http.Request) { t.Error("the upstream was asked") }))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := b.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
}

func TestPulse(t *testing.T) {
	var p pulse
	bad := errors.New("bad")
	for i, c := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {bad, false}, {bad, false}, {nil, false}, {bad, false}, {bad, false}, {bad, true}, {bad, false}, {nil, true}, {nil, false}, {bad, false},
	} {
		if got := p.feel(c.err, 3); got != c.want {
			t.Errorf("answer %v: %v, want %v", i, got, c.want)
		}
	}
}
