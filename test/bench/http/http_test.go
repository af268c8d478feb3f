package http

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/test/bench/internal/machine"
)

func TestRun(t *testing.T) {
	o := Options{Connections: 2, Time: time.Millisecond, Calls: 50, Rounds: 3}
	figures := Run(t, o, func(int, int, string) {})
	if len(figures) != 2+5+4 {
		t.Fatalf("%d figures", len(figures))
	}
	for _, f := range figures {
		if f.Rate <= 0 || f.Nanos <= 0 || f.RateRatio <= 0 {
			t.Errorf("%+v", f)
		}
	}
	var b strings.Builder
	if err := WriteTable(&b, machine.Describe(), o, figures); err != nil || strings.Count(b.String(), "| weir ") != 3 {
		t.Errorf("%s, %v", &b, err)
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
