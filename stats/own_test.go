package stats

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testredis"
	archivememory "github.com/weirhq/weir/stats/archive/memory"
	archiveredis "github.com/weirhq/weir/stats/archive/redis"
)

// While the shared archive is unavailable, an instance answers from what it has counted
// itself, and says so.
func TestAnswersOfItsOwn(t *testing.T) {
	server := testredis.Start(t)
	clock := newClock(noon)
	table := tableOf(t, someRules)
	instance := func() *Recorder {
		a, err := archiveredis.New(redisClient(t, server.Addr), archiveredis.Options{Timeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		r := newRecorder(t, Options{Archive: a, Clock: clock.now, Logger: slog.New(slog.DiscardHandler)})
		r.Install(table, 1)
		return r
	}
	mine, other := instance(), instance()
	v := &engine.Verdict{Allowed: true, Results: []engine.Result{
		{Rule: table.Rules()[0], Asked: true, Key: "user:alice", Decision: weir.Decision{Allowed: true}},
	}}
	pass := func() {
		mine.Observe(&alice, v, time.Millisecond)
		for range 10 {
			other.Observe(&alice, v, time.Millisecond)
		}
		clock.advance(10 * time.Second)
		mine.tick(clock.now())
		other.tick(clock.now())
	}
	answers := func(requests int64, local bool) {
		t.Helper()
		s, err := mine.Summary(t.Context(), noon, clock.now())
		if err != nil || s.Requests.Allowed != requests || s.Local != local || len(s.Rules) != 1 {
			t.Fatalf("the summary is %+v, %v; want %d, %v", s, err, requests, local)
		}
		series, err := mine.Series(t.Context(), Query{From: noon, To: clock.now(), Step: time.Second})
		if err != nil || series.Local != local {
			t.Fatalf("the series is %+v, %v", series, err)
		}
		sum := int64(0)
		for _, p := range series.Points {
			sum += p.Requests.Total()
		}
		if sum != requests {
			t.Errorf("the series has %d requests, want %d", sum, requests)
		}
		top, err := mine.Top(t.Context(), TopQuery{})
		if err != nil || top.Local != local || len(top.Keys) != 1 || top.Keys[0].Count != requests {
			t.Errorf("the ranking is %+v, %v; want %d", top, err, requests)
		}
	}
	pass()
	flush(t, mine)
	flush(t, other)
	answers(11, false)

	server.Kill()
	answers(1, true) // the outage is not detected yet
	pass()
	if mine.sendAll(t.Context()) {
		t.Fatal("it has arrived at a server that is dead")
	}
	answers(2, true)
	if h := mine.Health(); h.Err == nil || h.UnavailableSince.IsZero() {
		t.Errorf("it fares %+v", h)
	}

	server.Restart() // empty
	for _, r := range []*Recorder{mine, other} {
		for !r.sendAll(t.Context()) && t.Context().Err() == nil {
		}
	}
	answers(11, false) // of the second ten seconds; the first are lost with Redis
}

// An outage is noticed while there is nothing to count, and so is its end.
func TestIdleInstanceNoticesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := archivememory.New(archivememory.Options{})
		a := &brittle{Store: m}
		r := newRecorder(t, Options{Archive: a, Logger: slog.New(slog.DiscardHandler)})
		stop := run(t, r)
		defer stop()
		a.away.Store(true)
		time.Sleep(2 * rollUpEvery)
		if h := r.Health(); !errors.Is(h.Err, errLost) {
			t.Errorf("it fares %+v", h)
		}
		a.away.Store(false)
		time.Sleep(2 * rollUpEvery)
		if h := r.Health(); h.Err != nil {
			t.Errorf("it fares %+v", h)
		}
	})
}
