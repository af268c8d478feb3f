package http

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

func TestRun(t *testing.T) {
	r := bench.Test(t)
	run(r, options{connections: 2, time: time.Millisecond, calls: 20, rounds: 1})
	b := r.File("http.txt").String()
	if rows := strings.Count(b, "\n|"); rows != 4*2+2+2+5+4+2+3 || strings.Count(b, "| weir ") != 4 || strings.Contains(b, "| 0 |") {
		t.Errorf("%d rows in\n%s", rows, b)
	}
}

// Aims are beside the fastest peer, in the same round.
func TestAims(t *testing.T) {
	g := &group{name: "group", contestants: []contestant{{name: "alone"}, {name: "slow", peer: true}, {name: "fast", peer: true}, {name: weir, aim: 0.9}}}
	var rates bench.Scores
	for _, all := range [][]int{{400, 40, 4000}, {100, 10, 1000}, {200, 20, 2000}, {160, 16, 1600}} {
		var rounds []bench.Round
		for _, n := range all {
			rounds = append(rounds, bench.Round{Done: n, Wall: time.Second})
		}
		rates.Rounds = append(rates.Rounds, rounds)
	}
	if aims := g.aims(rates); len(aims) != 1 || aims[0].Measured != 0.8 || aims[0].Where != "fast" || aims[0].Verdict() != "missed" {
		t.Errorf("%+v", aims)
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
	if g.connected(t, bench.Serve(t, http.NotFoundHandler()), 1)(0)(0) == nil {
		t.Error("wrong answers over a connection went unnoticed")
	}
	if g.direct(http.NotFoundHandler())(0)(0) == nil {
		t.Error("wrong answers of a call went unnoticed")
	}
}
