package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/archiveredis"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/stats"
)

// A real Redis that keeps the statistics is killed: questions and the stream are answered
// with what this instance knows, and with everything once Redis is available again.
func TestRedisOfStatsIsKilled(t *testing.T) {
	redis := testredis.Start(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{redis.Addr}, DisableCache: true, DisableRetry: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	kept, err := archiveredis.Open(redislink.Given(client), archiveredis.Options{Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	recorder, err := stats.New(stats.Options{Archive: kept, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := newStand(t, Options{Stats: recorder, Clock: time.Now}).serve()
	runs(t, recorder)
	s.call("POST /v1/check", aliceAsks).want(t, 200, nil)
	if err := recorder.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	summary := func() (a SummaryAnswer) {
		t.Helper()
		s.call("GET /v1/stats/summary?to="+time.Now().Add(time.Minute).UTC().Format(time.RFC3339)+"&from="+time.Now().Add(-10*time.Minute).UTC().Format(time.RFC3339), "").want(t, 200, &a)
		return a
	}
	if a := summary(); a.Requests != 1 || len(a.Rules) != 1 {
		t.Errorf("%+v", a)
	}

	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, err := http.NewRequestWithContext(ctx, "GET", s.server.URL+"/v1/stats/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	f := &following{events: make(chan string, 100)}
	go func() {
		defer close(f.events)
		readEvents(answer.Body, func(data string) { f.events <- data })
	}()
	if a := f.next(t); a.Local {
		t.Errorf("%+v", a)
	}
	redis.Kill()
	for !f.next(t).Local {
	}
	s.call("POST /v1/check", aliceAsks).want(t, 200, nil)
	for _, what := range []string{"summary", "series", "top", "rules", "clients", "client?key=user:alice", "denials", "usage?rule=api"} {
		var a struct{ Local bool }
		if s.call("GET /v1/stats/"+what, "").want(t, 200, &a); !a.Local {
			t.Errorf("%s does not say that it is of one instance alone", what)
		}
	}
	s.call("GET /v1/stats/suggest?rule=api", "").wantProblem(t, fault.StoreUnavailable)
	redis.Restart()
	for f.next(t).Local {
	}
	if a := summary(); a.Requests != 1 || a.Recorder.UnavailableSince != nil {
		t.Errorf("after it is back: %+v", a)
	}
}
