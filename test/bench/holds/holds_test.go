package holds

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/test/bench/internal/machine"
)

func TestRun(t *testing.T) {
	figures := Run(t, Options{Keys: 10, Round: time.Millisecond, Rounds: 3}, func(int, int, string) {})
	if len(figures) != 30 {
		t.Fatalf("%d figures", len(figures))
	}
	for _, f := range figures {
		if f.Micros <= 0 || f.Ratio <= 0 || (f.Name == "take" || f.Name == "take of an op") && f.Ratio != 1 {
			t.Errorf("%+v", f)
		}
	}
	var b strings.Builder
	testcall.OK(t, WriteTable(&b, machine.Describe(), Options{}, figures))
	if strings.Count(b.String(), "reserve and settle in") != 2 || strings.Count(b.String(), "a calendar month in") != 2 || strings.Count(b.String(), "release a place in") != 2 || strings.Count(b.String(), "leaves units for others in") != 2 {
		t.Errorf("%s", &b)
	}
}

// A denied request fails the run.
func TestDenialsAreSeen(t *testing.T) {
	l := testcall.Must(weir.NewLimiter(memory.New(memory.Options{}), weir.Limit{N: 100, Period: time.Hour}))(t)
	full := testcall.Must(weir.NewLimiter(memory.New(memory.Options{}), weir.Concurrent(1, time.Hour)))(t)
	testcall.Must(full.Take(t.Context(), "a", 1))(t)
	for _, c := range contestants(Figure{Algorithm: weir.TokenBucket}) {
		l := l
		if c.name == inFlight {
			l = full
		}
		if _, err := measure(Figure{Callers: 1}, c, l, []string{"a"}, time.Minute); err == nil {
			t.Errorf("%s: denials went unnoticed", c.name)
		}
	}
}
