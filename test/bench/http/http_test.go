package http

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/test/bench/internal/machine"
)

func TestRun(t *testing.T) {
	o := Options{Connections: 2, Time: time.Millisecond, Calls: 50, Rounds: 3}
	results := Run(t, o, func(int, int, string) {})
	figures, aims := 0, 0
	for _, r := range results {
		aims += len(r.Aims)
		for _, f := range r.Figures {
			if figures++; f.Rate <= 0 || f.Nanos <= 0 || f.RateRatio <= 0 || f.NanosRatio <= 0 {
				t.Errorf("%s: %+v", r.Group, f)
			}
		}
	}
	if figures != 2+2+5+4 || aims != 3 {
		t.Fatalf("%d figures, %d aims", figures, aims)
	}
	var b strings.Builder
	if err := WriteTable(&b, machine.Describe(), o, results); err != nil || strings.Count(b.String(), "| weir ") != 4 {
		t.Errorf("%s, %v", &b, err)
	}
}

// Ratios are of the same round, and aims beside the fastest peer.
func TestSummarize(t *testing.T) {
	g := &group{name: "group", contestants: []contestant{{name: "alone"}, {name: "slow", peer: true}, {name: "fast", peer: true}, {name: weir, aim: 0.9}}}
	r := g.summarize([][]Figure{
		{{Rate: 400, Nanos: 1}, {Rate: 40, Nanos: 1}, {Rate: 4000, Nanos: 1}},
		{{Rate: 100, Nanos: 2}, {Rate: 10, Nanos: 2}, {Rate: 1000, Nanos: 2}},
		{{Rate: 200, Nanos: 2}, {Rate: 20, Nanos: 2}, {Rate: 2000, Nanos: 2}},
		{{Rate: 160, Nanos: 5, Allocs: 3}, {Rate: 16, Nanos: 4, Allocs: 2}, {Rate: 1600, Nanos: 3, Allocs: 1}},
	})
	if f := r.Figures[3]; f.Rate != 160 || f.RateRatio != 0.4 || f.Nanos != 4 || f.Allocs != 2 || f.NanosRatio != 4 {
		t.Errorf("%+v", f)
	}
	if len(r.Aims) != 1 || r.Aims[0].Measured != 0.8 || r.Aims[0].Where != "fast" || r.Aims[0].Verdict() != "missed" {
		t.Errorf("%+v", r.Aims)
	}
}

// The handler that does not decide answers as much as weir does.
func TestEcho(t *testing.T) {
	for _, g := range groups(t)[:2] {
		var answers [2]httpapi.CheckAnswer
		for i, c := range g.contestants {
			answers[i] = sample(t, c.handler, g.bodies[7])
		}
		echoed, decided := answers[0], answers[1]
		if len(echoed.Results) != len(decided.Results) || echoed.Results[0].Key != "user:user-7" || decided.Results[0].Key != "user:user-7" {
			t.Errorf("%s: weir says\n%+v\nand the echo\n%+v", g.name, decided, echoed)
		}
	}
}

// A contestant that answers something else fails the run.
func TestWrongAnswersAreSeen(t *testing.T) {
	g := middlewares(t, "broken", 1_000_000, http.StatusOK)
	g.contestants = []contestant{{name: "broken", handler: http.NotFoundHandler()}}
	g.listen(t)
	o := Options{Connections: 1, Time: time.Millisecond, Calls: 10}
	if _, err := g.rate(&g.contestants[0], o); err == nil {
		t.Error("wrong answers over a connection went unnoticed")
	}
	if err := g.direct(&g.contestants[0], o, &Figure{}); err == nil {
		t.Error("wrong answers of a call went unnoticed")
	}
}
