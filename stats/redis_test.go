package stats

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/archiveredis"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/stats/archive"
)

// Figures of all instances add up, and each sees the sum.
func TestInstancesAddUp(t *testing.T) {
	server := testredis.Start(t)
	clock := newClock(noon)
	var all []*Recorder
	table := tableOf(t, someRules)
	for range 3 {
		a, err := archiveredis.Open(redislink.Given(redisClient(t, server.Addr)), archiveredis.Options{Timeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		r := newRecorder(t, Options{Archive: a, Clock: clock.now})
		r.Install(table, 1)
		all = append(all, r)
	}
	c := table.Rules()[0]
	for _, r := range all {
		r.Places(c.ID).Take() // and never leaves
	}
	for range 25 {
		for i, r := range all {
			v := &engine.Verdict{Allowed: true, Results: []engine.Result{{Rule: c, Asked: true, Key: fmt.Sprint("user:", i), Decision: weir.Decision{Allowed: i > 0}}}}
			for range i + 1 {
				r.Observe(&alice, v, time.Millisecond)
			}
			r.ObserveUpstream("shop", 200, time.Second, nil)
			r.Places(c.ID).Reach(int64(10 * i))
			r.ObserveHold(engine.HoldEvent{Kind: engine.SettledHold, Parts: []engine.SettledPart{{Rule: c.ID, Reserved: 4, Used: 2}}})
		}
		clock.advance(time.Second)
		for _, r := range all {
			r.tick(clock.now())
		}
	}
	for _, r := range all {
		flush(t, r)
	}
	for _, r := range all {
		s, err := r.Summary(t.Context(), noon, clock.now())
		if err != nil {
			t.Fatal(err)
		}
		if s.Counts.Allowed != 150 || s.Rate != 6 || s.Decision.Count != 150 || s.Upstream.Requests != 75 || s.Rules[0].Counts.Denied != 25 || s.Rules[0].Decision.Count != 150 {
			t.Errorf("%+v", s)
		}
		if in := s.Rules[0].InFlight; in == nil || in.Mean != 3 || in.Highest != 20 {
			t.Errorf("in flight: %+v", in)
		}
		holds, err := r.Holds(t.Context(), HoldsQuery{Rule: c.ID, From: noon, To: clock.now()})
		if err != nil || holds.Total.Settled != 75 || holds.Total.Reserved != 300 || holds.Total.Used != 150 || holds.Total.Ratio(0.9) != 0.5 {
			t.Errorf("%+v, %v", holds, err)
		}
		top, err := r.Top(t.Context(), TopQuery{})
		if err != nil || fmt.Sprint(top.Keys) != "[{user:2 75 0} {user:1 50 0} {user:0 25 0}]" {
			t.Errorf("%+v, %v", top, err)
		}
	}
}

// Redis goes away for real while requests are counted: they are all there afterwards,
// each once.
func TestRedisGoesAway(t *testing.T) {
	server := testredis.Start(t)
	a, err := archiveredis.Open(redislink.Given(redisClient(t, server.Addr)), archiveredis.Options{Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder(t, Options{Archive: a, Logger: slog.New(slog.DiscardHandler)})
	follow, _ := r.Subscribe()
	begin := time.Now().Unix()
	stop := run(t, r)
	v := &engine.Verdict{Allowed: true}
	observed := int64(0)
	count := func(seconds int) {
		for range seconds {
			for range 100 {
				r.Observe(&alice, v, time.Millisecond)
				observed++
			}
			<-follow.C
		}
	}
	count(2)
	server.Pause() // it keeps what it has, and what was sent may arrive later
	for r.Health().Err == nil {
		count(1)
	}
	server.Resume()
	count(2)
	stop()
	if a, err = archiveredis.Open(redislink.Given(redisClient(t, server.Addr)), archiveredis.Options{Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	for level := range a.Levels(archive.Series) {
		slots, err := a.Read(t.Context(), archive.Series, level, begin, time.Now().Unix()+1)
		if err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		for _, s := range slots {
			total += s.Frame.Requests.Total()
		}
		if total != observed {
			t.Errorf("level %d has %d, want %d", level, total, observed)
		}
	}
}
