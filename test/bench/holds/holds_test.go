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
	few := testkit.Must(newSubject(memory.New(memory.Options{}), weir.Limit{N: 100, Period: time.Hour}, nil))(t)
	full := testkit.Must(newSubject(memory.New(memory.Options{}), weir.Concurrent(1, time.Hour), []string{"a"}))(t)
	for _, c := range withPlaces {
		s := few
		if c.name == inFlight.name {
			s = full
		}
		var err error
		for n := 0; n < 100 && err == nil; n++ {
			err = c.do(s, "a")
		}
		if err == nil {
			t.Errorf("%s: denials went unnoticed", c.name)
		}
	}
}
