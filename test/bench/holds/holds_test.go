package holds

import (
	"bytes"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

func TestRun(t *testing.T) {
	r := bench.Test(t)
	run(r, options{keys: 10, round: time.Millisecond, rounds: 1})
	b := r.File("holds.txt").Bytes()
	if rows := bytes.Count(b, []byte("\n|")); rows != 2+30+2+8 || bytes.Count(b, []byte("| met "))+bytes.Count(b, []byte("| missed ")) != 8 || bytes.Contains(b, []byte(" 0.00 | m")) {
		t.Errorf("%d rows in\n%s", rows, b)
	}
}

func TestRunMany(t *testing.T) {
	r := bench.Test(t)
	runMany(r, manyOptions{open: 200, burst: 10, pairs: 10})
	b := r.File("holds-many.txt").Bytes()
	if rows := bytes.Count(b, []byte("\n|")); rows != 2+len(weir.Algorithms()) {
		t.Errorf("%d rows in\n%s", rows, b)
	}
}

// A denied request fails the run.
func TestDenialsAreSeen(t *testing.T) {
	l := testkit.Must(weir.NewLimiter(memory.New(memory.Options{}), weir.Limit{N: 100, Period: time.Hour}))(t)
	full := testkit.Must(weir.NewLimiter(memory.New(memory.Options{}), weir.Concurrent(1, time.Hour)))(t)
	testkit.Must(full.Take(t.Context(), "a", 1))(t)
	for _, c := range withPlaces {
		l := l
		if c.name == inFlight.name {
			l = full
		}
		if _, err := measure(c, l, []string{"a"}, 1, time.Minute); err == nil {
			t.Errorf("%s: denials went unnoticed", c.name)
		}
	}
}
