package stats

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/stats/archive"
)

// run runs a recorder, and returns what ends it and waits.
func run(t *testing.T, r *Recorder) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// Every subscription gets every second. One that does not read loses the oldest, and
// blocks no other.
func TestSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := archive.NewMemory(archive.Keep{})
		r := newRecorder(t, Options{Archive: a, MaxSubscribers: 2})
		quick, err := r.Subscribe()
		if err != nil {
			t.Fatal(err)
		}
		slow, _ := r.Subscribe()
		if _, err := r.Subscribe(); !errors.Is(err, ErrTooMany) {
			t.Errorf("a third one: %v", err)
		}
		begin := time.Now().Truncate(time.Second)
		stop := run(t, r)
		synctest.Wait()
		if err := r.Run(t.Context()); err == nil {
			t.Error("it runs twice")
		}
		v := &engine.Verdict{Allowed: true}
		for i := range 20 {
			for range i {
				r.Observe(&alice, v, time.Millisecond)
			}
			l := <-quick.C
			if p := l.Point(); p.Counts.Allowed != int64(i) || p.Rate != float64(i) || !p.Time.Equal(begin.Add(time.Duration(i)*time.Second)) || l.Local {
				t.Errorf("second %d: %+v", i, p)
			}
		}
		synctest.Wait() // the last second is sent to one after the other
		if slow.Dropped() != 20-behind {
			t.Errorf("%d were dropped", slow.Dropped())
		}
		if l := <-slow.C; l.Frame.Requests.Total() != 20-behind {
			t.Errorf("the oldest that is left is %+v", l)
		}
		slow.Close()
		slow.Close()
		r.Observe(&alice, v, time.Millisecond)
		stop()
		for range quick.C {
		}
		if slots, _ := a.Read(t.Context(), archive.Series, 3, begin.Unix(), begin.Unix()+60); len(slots) != 1 || slots[0].Frame.Requests.Total() != 191 {
			t.Errorf("the day has %+v", slots)
		}
		if after, err := r.Subscribe(); err != nil {
			t.Error(err)
		} else if _, open := <-after.C; open {
			t.Error("somebody is told after the end")
		}
	})
}

// brittle is an archive that can be unavailable, or hang until the caller gives up.
type brittle struct {
	*archive.Memory
	away, hang atomic.Bool
}

func (b *brittle) Add(ctx context.Context, parts []archive.Part) error {
	if b.hang.Load() {
		<-ctx.Done()
	}
	if b.away.Load() || ctx.Err() != nil {
		return errLost
	}
	return b.Memory.Add(ctx, parts)
}

func (b *brittle) RollUp(context.Context, time.Time) error {
	if b.away.Load() {
		return errLost
	}
	return nil
}

func (b *brittle) Lag() time.Duration { return 2 * time.Second }

// While the archive is unavailable, as much as was promised is kept and sent afterwards; the
// rest is dropped and counted. Live figures go on.
func TestArchiveIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := archive.NewMemory(archive.Keep{})
		a := &brittle{Memory: m}
		var log bytes.Buffer
		r := newRecorder(t, Options{Archive: a, MaxPending: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		follow, _ := r.Subscribe()
		stop := run(t, r)
		v := &engine.Verdict{Allowed: true}
		second := func() Live {
			r.Observe(&alice, v, time.Millisecond)
			return <-follow.C
		}
		for range 10 {
			second()
		}
		a.away.Store(true)
		for range 60 {
			if l := second(); l.Frame.Requests.Total() != 1 {
				t.Errorf("a second without the archive: %+v", l)
			}
		}
		if h := r.Health(); h.Lost != 0 || h.Pending < 60 || h.UnavailableSince.IsZero() || !errors.Is(h.Err, errLost) {
			t.Errorf("after a minute: %+v", h)
		}
		for range 20 {
			if l := second(); !l.Local {
				t.Error("it does not say that it is local")
			}
		}
		h := r.Health()
		if h.Lost < 18 || h.Lost > 21 || h.Pending > 80 {
			t.Errorf("after 80 seconds: %+v", h)
		}
		a.away.Store(false)
		for range 5 {
			second()
		}
		was := h.Lost
		if h = r.Health(); h.Pending > 1 || !h.UnavailableSince.IsZero() || h.Err != nil || h.Lost > was+1 {
			t.Errorf("when it is back: %+v", h)
		}
		stop()
		now := time.Now().Unix()
		slots, err := m.Read(t.Context(), archive.Series, 3, now-86400, now+1)
		if err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		for _, s := range slots {
			total += s.Frame.Requests.Total()
		}
		if total != 95-h.Lost {
			t.Errorf("%d requests are kept, %d lost, 95 were made", total, h.Lost)
		}
		if n := strings.Count(log.String(), "\n"); n != 2 {
			t.Errorf("the log has %d lines:\n%s", n, log.String())
		}
	})
}

// The hot path does not know whether the archive hangs.
func TestArchiveHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := archive.NewMemory(archive.Keep{})
		a := &brittle{Memory: m}
		a.hang.Store(true)
		r := newRecorder(t, Options{Archive: a})
		stop := run(t, r)
		v := &engine.Verdict{Allowed: true}
		begin := time.Now()
		for range 100 {
			for range 1000 {
				r.Observe(&alice, v, time.Millisecond)
			}
			r.Health()
		}
		if took := time.Since(begin); took != 0 { // time passes only when all are waiting
			t.Errorf("requests waited for %v", took)
		}
		time.Sleep(3 * time.Second)
		a.hang.Store(false)
		stop()
	})
}

// With concurrent requests, changes of rules and sends, everything is counted once.
func TestAllAtOnce(t *testing.T) {
	a, _ := archive.NewMemory(archive.Keep{})
	r := newRecorder(t, Options{Archive: a})
	table, without := tableOf(t, someRules), tableOf(t, "rules: [{id: soon, key: user, limit: 2/1h}]")
	r.Install(table, 1)
	stop := run(t, r)
	var all sync.WaitGroup
	const each = 20_000
	for range 4 {
		all.Go(func() {
			v := &engine.Verdict{Allowed: true, Results: []engine.Result{{Rule: table.Rules()[0], Asked: true, Key: "user:alice", Decision: weir.Decision{Allowed: true}}}}
			for range each {
				r.Observe(&alice, v, time.Microsecond)
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for range 50 {
				if err := r.Flush(t.Context()); err != nil {
					t.Error(err)
				}
				r.Install(without, 1)
				r.tick(time.Now())
				r.Install(table, 1)
			}
		})
	}
	all.Wait()
	stop()
	now := time.Now().Unix()
	slots, err := a.Read(t.Context(), archive.Series, 1, now-300, now+60)
	if err != nil {
		t.Fatal(err)
	}
	requests, decisions := int64(0), int64(0)
	for _, s := range slots {
		requests += s.Frame.Requests.Total()
		for line, counts := range s.Frame.Rules {
			if line.Rule == "api" || line.Rule == archive.Other {
				decisions += counts.Allowed
			}
		}
	}
	if requests != 4*each || decisions != 4*each {
		t.Errorf("%d requests and %d decisions, want %d", requests, decisions, 4*each)
	}
}
