package httpapi

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/fault"
	"github.com/weirhq/weir/internal/traffic/simulate"
)

// What is answered is what the package makes of the same words, to the last byte.
func TestSimulate(t *testing.T) {
	s := newStand(t, Options{})
	for _, c := range []struct {
		body, limit, traffic string
		seed                 uint64
		columns              int
		lanes                []string
	}{
		{`{"limits":["100/1m"],"traffic":"boundary"}`, "100/1m", "boundary", 1, 60, nil},
		{`{"limits":["100/1m burst 20"],"traffic":"poisson","seed":7,"columns":480}`, "100/1m burst 20", "poisson", 7, 480, nil},
		{`{"limits":["10/1s"],"traffic":"poisson","seed":0}`, "10/1s", "poisson", 0, 60, nil},
		{`{"limits":["2000000/1h"],"traffic":"1@0s,3@1.5s"}`, "2000000/1h", "1@0s,3@1.5s", 1, 60, nil},
		{`{"limits":["100/month zone Asia/Shanghai starts 15"],"traffic":"overload"}`, "100/month zone Asia/Shanghai starts 15", "overload", 1, 60, nil},
		{`{"limits":["10/1s"],"traffic":"burst","algorithms":["sliding_log","leaky_bucket shape"]}`, "10/1s", "burst", 1, 60, []string{"sliding_log", "leaky_bucket shape"}},
	} {
		limit := weir.MustParseLimit(c.limit)
		traffic, err := simulate.ParseTraffic(c.traffic, limit, c.seed, simulate.MaxRequests)
		if err != nil {
			t.Fatal(err)
		}
		lanes, leftOut := simulate.AllLanes(limit)
		if c.lanes != nil {
			if lanes, err = simulate.Lanes(limit, c.lanes...); err != nil {
				t.Fatal(err)
			}
			leftOut = nil
		}
		traffic.Notes = append(traffic.Notes, leftOut...)
		var want bytes.Buffer
		if err := simulate.WriteJSON(&want, []*simulate.Report{simulate.Run(limit, lanes, traffic, c.columns)}); err != nil {
			t.Fatal(err)
		}
		if got := s.call("POST /v1/simulate", c.body).want(t, 200, nil); !bytes.Equal(got.body, want.Bytes()) {
			t.Errorf("%s answers\n%s, want\n%s", c.body, got.body, want.Bytes())
		}
	}
	// The dates of a log decide in which month a request is.
	var months struct{ Simulations []simulate.Report }
	s.call("POST /v1/simulate", `{"limits":["1/month zone Asia/Shanghai starts 15"],"log":"2026-02-14T15:59:59Z\n2026-02-14T16:00:00Z\n2026-03-14T15:00:00Z"}`).want(t, 200, &months)
	if got := months.Simulations[0]; got.Lanes[0].Allowed != 2 || got.Lanes[0].Denied != 1 || got.Axis.Ticks[0].Label != "2026-02-15" {
		t.Errorf("a log of two months: %+v", got)
	}
	const log = "2026-01-01T10:00:00Z alice\n2026-01-01T10:00:00.5Z bob 3\n"
	traffic, err := simulate.ParseLog("log", log, weir.MustParseLimit("2/1s"))
	if err != nil {
		t.Fatal(err)
	}
	lanes, _ := simulate.AllLanes(weir.MustParseLimit("2/1s"))
	var want bytes.Buffer
	if err := simulate.WriteJSON(&want, []*simulate.Report{simulate.Run(weir.MustParseLimit("2/1s"), lanes, traffic, 60)}); err != nil {
		t.Fatal(err)
	}
	if got := s.call("POST /v1/simulate", dump(t, SimulateRequest{Limits: []string{"2/1s"}, Log: log})).want(t, 200, nil); !bytes.Equal(got.body, want.Bytes()) {
		t.Errorf("a log gives\n%s, want\n%s", got.body, want.Bytes())
	}
	var several struct{ Simulations []simulate.Report }
	s.call("POST /v1/simulate", `{"limits":["100/1m","10/1s burst 3"],"traffic":"50@0s"}`).want(t, 200, &several)
	if len(several.Simulations) != 2 || several.Simulations[1].Limit != "10/1s burst 3" {
		t.Errorf("of two limits: %+v", several)
	}
}

func TestSimulateProblems(t *testing.T) {
	s := newStand(t, Options{})
	nine := strings.TrimSuffix(strings.Repeat(`"1/1s",`, MaxSimulateLimits+1), ",")
	for _, c := range []struct{ body, field, words string }{
		{`{"traffic":"burst"}`, "limits", "required"},
		{`{"limits":[],"traffic":"burst"}`, "limits", "required"},
		{`{"limits":[` + nine + `],"traffic":"burst"}`, "limits", "maximum of 8"},
		{`{"limits":"10/1s","traffic":"burst"}`, "limits", "limits"},
		{`{"limits":["10/1s","ten"],"traffic":"burst"}`, "limits[1]", "ten"},
		{`{"limits":["10/1s"]}`, "traffic", "required"},
		{`{"limits":["10/1s"],"traffic":"brust"}`, "traffic", `did you mean "burst"?`},
		{`{"limits":["10/1s"],"traffic":"200001@0s"}`, "traffic", "more than 200000 requests"},
		{`{"limits":["1000000000/1s"],"traffic":"steady"}`, "traffic", "more than 200000 requests"},
		{`{"limits":["10/1s","20/1s"],"traffic":"150000@0s"}`, "traffic", "more than 50000 requests"},
		{`{"limits":["10/1s","20/1s"],"traffic":"200000@0s"}`, "traffic", "all limits together"},
		{`{"limits":["10/1s"],"traffic":"burst","log":"1s"}`, "log", "one of them"},
		{`{"limits":["10/1s"],"log":"1s\nnever"}`, "log", "log:2: \"never\" is not a time"},
		{`{"limits":["10/1s"],"log":"` + strings.Repeat(`1s\n`, 200_001) + `"}`, "log", "more than 200000 requests"},
		{`{"limits":["10/1s","20/1s"],"log":"` + strings.Repeat(`1s\n`, 150_000) + `"}`, "log", "more than 200000 requests"},
		{`{"limits":["10/1s"],"traffic":"burst","algorithms":["none"]}`, "algorithms", "none"},
		{`{"limits":["10/1s"],"traffic":"burst","algorithms":["a","b","c","d","e","f","g","h"]}`, "algorithms", "only 7"},
		{`{"limits":["2000000/1h"],"traffic":"1@0s","algorithms":["sliding_log"]}`, "algorithms", "sliding_window"},
		{`{"limits":["10/month"],"traffic":"burst","algorithms":["token_bucket"]}`, "algorithms", "choose fixed_window"},
		{`{"limits":["10/month starts 32"],"traffic":"burst"}`, "limits[0]", "from 1 to 31"},
		{`{"limits":["10/month zone Mars/Olympus"],"traffic":"burst"}`, "limits[0]", "Mars/Olympus"},
		{`{"limits":["10/1s"],"traffic":"burst","columns":481}`, "columns", "1 to 480"},
		{`{"limits":["10/1s"],"traffic":"burst","columns":-1}`, "columns", "1 to 480"},
		{`{"limits":["10/1s"],"traffic":"burst","seed":-1}`, "seed", "seed"},
		{`{"limit":["10/1s"],"traffic":"burst"}`, "limit", "did you mean limits?"},
	} {
		p := s.call("POST /v1/simulate", c.body).wantProblem(t, fault.BadField, c.words)
		if p.Field != c.field || strings.Contains(p.Detail, "weir:") {
			t.Errorf("%s: %q in %q", c.body, p.Detail, p.Field)
		}
	}
	s.call("POST /v1/simulate", "").wantProblem(t, fault.BadBody)
	s.call("POST /v1/simulate", strings.Repeat(" ", MaxSimulateBody+1)).wantProblem(t, fault.TooLarge)
	s.call("POST /v1/simulate?seed=1", `{"limits":["10/1s"],"traffic":"burst"}`).wantProblem(t, fault.BadField)
}

// However many ask at once, a few are worked on, and the others are told to come again.
func TestSimulateIsBounded(t *testing.T) {
	s := newStand(t, Options{})
	const body = `{"limits":["10/1s"],"traffic":"burst"}`
	s.simulating.Add(maxSimulating)
	r := s.call("POST /v1/simulate", body)
	if r.wantProblem(t, fault.Busy, "try again"); r.Header.Get("Retry-After") != "1" {
		t.Errorf("%v", r.Header)
	}
	s.simulating.Add(-maxSimulating)
	s.call("POST /v1/simulate", body).want(t, 200, nil)

	var wg sync.WaitGroup
	statuses := make(chan int, 20)
	for i := range cap(statuses) {
		wg.Go(func() {
			statuses <- s.call("POST /v1/simulate", fmt.Sprintf(`{"limits":["%d/1s"],"traffic":"steady"}`, 100+i)).StatusCode
		})
	}
	wg.Wait()
	close(statuses)
	worked := 0
	for status := range statuses {
		if status != 200 && status != 503 {
			t.Errorf("one is answered %d", status)
		}
		if status == 200 {
			worked++
		}
	}
	if worked == 0 || s.simulating.Load() != 0 {
		t.Errorf("%d were worked on, and %d still are", worked, s.simulating.Load())
	}
}
