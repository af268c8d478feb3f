package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

// steady tells a recorder that every verdict took the same time, so that answers can be
// compared.
type steady struct{ *stats.Recorder }

func (s steady) Observe(req *rule.Request, v *engine.Verdict, _ time.Duration) {
	s.Recorder.Observe(req, v, 20*time.Microsecond)
}

// losableArchive is an archive that can be lost, or be slow.
type losableArchive struct {
	*archive.Memory
	lost atomic.Bool
	slow atomic.Bool // until the caller's time is up
	lag  time.Duration
}

func (l *losableArchive) Lag() time.Duration { return l.lag }

var errArchive = errors.New("the archive is lost")

func (l *losableArchive) Read(ctx context.Context, kind archive.Kind, level int, from, to int64) ([]archive.Slot, error) {
	if l.slow.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if l.lost.Load() {
		return nil, errArchive
	}
	return l.Memory.Read(ctx, kind, level, from, to)
}

func (l *losableArchive) Add(ctx context.Context, parts []archive.Part) error {
	if l.lost.Load() {
		return errArchive
	}
	return l.Memory.Add(ctx, parts)
}

// newRecorder returns one over an archive in memory that can be lost, and who watches it.
func newRecorder(t testing.TB, o stats.Options) (*stats.Recorder, *alert.Watcher, *losableArchive) {
	t.Helper()
	memory, err := archive.NewMemory(archive.Keep{})
	if err != nil {
		t.Fatal(err)
	}
	kept := &losableArchive{Memory: memory}
	o.Archive, o.Logger = kept, slog.New(slog.DiscardHandler)
	recorder, err := stats.New(o)
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := alert.New(alert.Options{Source: recorder, Clock: o.Clock, Logger: o.Logger})
	if err != nil {
		t.Fatal(err)
	}
	return recorder, watcher, kept
}

// withStats adds statistics and alerts to options. Streams end after their first event.
func withStats(t testing.TB, o *Options) (*stats.Recorder, *losableArchive) {
	t.Helper()
	recorder, watcher, kept := newRecorder(t, stats.Options{Clock: func() time.Time { return begin }})
	stopping := make(chan struct{})
	close(stopping)
	o.Stats, o.Alerts, o.Stopping = recorder, watcher.List(), stopping
	o.TestAlerts = func(context.Context) (alert.Alert, []alert.Delivery) {
		return alert.Alert{ID: "test", Kind: alert.Test, State: alert.Firing}, []alert.Delivery{{To: "webhook example.com"}}
	}
	return recorder, kept
}

// statsStand is a stand that remembers what happened, by its own clock.
type statsStand struct {
	*stand
	recorder *stats.Recorder
	watcher  *alert.Watcher
	archive  *losableArchive
}

func newStatsStand(t testing.TB, o Options) *statsStand {
	t.Helper()
	s := &statsStand{stand: &stand{}}
	s.now.Store(begin.UnixMicro())
	clock := func() time.Time { return time.UnixMicro(s.now.Load()) }
	s.recorder, s.watcher, s.archive = newRecorder(t, stats.Options{Clock: clock})
	o.Stats, o.Alerts = s.recorder, s.watcher.List()
	o.Limits.Calls = weir.Limit{N: 1_000_000, Period: time.Second} // the clock stands still
	s.stand = newStand(t, o)
	return s
}

// pass lets seconds pass, and keeps what happened in them.
func (s *statsStand) pass(seconds int) {
	s.t.Helper()
	for range 2 { // the second time it is another second that is counted
		if err := s.recorder.Flush(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		s.now.Add(int64(seconds) * time.Second.Microseconds())
		seconds = 0
	}
}

// check asks n times, and wants so many to pass.
func (s *statsStand) check(body string, n, pass int) {
	s.t.Helper()
	for range n {
		var a CheckAnswer
		s.call("POST /v1/check", body).want(s.t, 200, &a)
		if a.Allowed {
			pass--
		}
	}
	if pass != 0 {
		s.t.Errorf("%s: %d more passed than should have", body, -pass)
	}
}
