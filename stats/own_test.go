package stats

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/archiveredis"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// While the shared archive is unavailable, an instance answers from what it has counted
// itself, and says so. If the archive has lost data meanwhile, it says since when it is complete.
func TestAnswersOfItsOwn(t *testing.T) {
	server := testredis.Start(t)
	clock := newClock(noon)
	table := tableOf(t, someRules)
	instance := func() *Recorder {
		a, err := archiveredis.Open(redislink.Given(redisClient(t, server.Addr)), archiveredis.Options{Timeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		r := newRecorder(t, Options{Archive: a, Clock: clock.now, Logger: slog.New(slog.DiscardHandler)})
		r.Install(table, 1)
		return r
	}
	mine, other := instance(), instance()
	v := &engine.Verdict{Allowed: true, Results: []engine.Result{
		{Rule: table.Rules()[0], Compiled: table.Rules()[0].Limits("", "")[0], Asked: true, Key: "user:alice", Decision: weir.Decision{Allowed: true}},
	}}
	blocked := &engine.Verdict{Reason: engine.Blocked}
	pass := func() {
		mine.Observe(&alice, v, time.Millisecond)
		mine.Observe(&rule.Request{User: "mallory"}, blocked, time.Millisecond)
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
		if err != nil || s.Counts.Allowed != requests || s.Local != local || len(s.Rules) != 1 {
			t.Fatalf("the summary is %+v, %v; want %d, %v", s, err, requests, local)
		}
		series, err := mine.Series(t.Context(), Query{From: noon, To: clock.now(), Step: time.Second})
		if err != nil || series.Local != local {
			t.Fatalf("the series is %+v, %v", series, err)
		}
		sum := int64(0)
		for _, p := range series.Points {
			sum += p.Counts.Allowed
		}
		if sum != requests {
			t.Errorf("the series has %d requests, want %d", sum, requests)
		}
		top, err := mine.Top(t.Context(), TopQuery{})
		if err != nil || top.Local != local || len(top.Keys) != 1 || top.Keys[0].Count != requests {
			t.Errorf("the ranking is %+v, %v; want %d", top, err, requests)
		}
		clients, err := mine.Clients(t.Context(), ClientsQuery{From: noon, To: clock.now()})
		if err != nil || clients.Local != local || len(clients.Clients) != 1 || clients.Clients[0].Count != requests {
			t.Errorf("the clients are %+v, %v; want %d", clients, err, requests)
		}
		client, err := mine.ClientSeries(t.Context(), "user:alice", noon, clock.now())
		if err != nil || client.Local != local {
			t.Errorf("the client is %+v, %v", client, err)
		}
		rules, err := mine.RuleSeries(t.Context(), RuleQuery{From: noon, To: clock.now()})
		if err != nil || rules.Local != local || len(rules.Rules) != 1 || rules.Rules[0].Total != requests {
			t.Errorf("the rules are %+v, %v; want %d", rules, err, requests)
		}
		usage, err := mine.Usage(t.Context(), "api", noon, clock.now())
		if err != nil || usage.Local != local || len(usage.Limits) != 1 || usage.Limits[0].Requests != requests {
			t.Errorf("the usage is %+v, %v; want %d", usage, err, requests)
		}
		denials, err := mine.Denials(t.Context(), LatestQuery{})
		if err != nil || denials.Local != local || len(denials.Events) == 0 || denials.Events[0].Key != "user:mallory" {
			t.Errorf("the denials are %+v, %v", denials, err)
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
	if h := mine.Health(); h.Err == nil || h.UnavailableSince.IsZero() || !h.CompleteSince.IsZero() {
		t.Errorf("it fares %+v", h)
	}

	server.Restart() // empty
	for _, r := range []*Recorder{mine, other} {
		for !r.sendAll(t.Context()) && t.Context().Err() == nil {
		}
	}
	answers(11, false) // of the second ten seconds; the first are lost with Redis
	if since := mine.Health().CompleteSince; !since.Equal(clock.now()) {
		t.Errorf("it is said to be complete since %v", since)
	}
	clock.advance(time.Second)
	mine.checkKept(t.Context())
	if since := mine.Health().CompleteSince; !since.Equal(clock.now().Add(-time.Second)) {
		t.Errorf("what has arrived since is lost, too: %v", since)
	}
	server.Kill() // and nobody notices
	server.Restart()
	for !mine.Health().CompleteSince.Equal(clock.now()) && t.Context().Err() == nil { // the connection comes back
		mine.checkKept(t.Context())
	}
	clock.advance(time.Hour)
	mine.checkKept(t.Context()) // it has nothing to compare
	if since := mine.Health().CompleteSince; !since.Equal(clock.now().Add(-time.Hour)) {
		t.Errorf("%v", since)
	}
}

// An outage is noticed while there is nothing to count, and so is its end.
func TestIdleInstanceNoticesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := archive.NewMemory(archive.Keep{})
		a := &brittle{Memory: m}
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
