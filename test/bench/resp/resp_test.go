package resp

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/test/bench/internal/bench"
)

func TestRun(t *testing.T) {
	r := bench.Test(t)
	// redis-benchmark counts milliseconds, so a round must have more than one.
	run(r, options{connections: 3, pipeline: 4, keys: 10, commands: 12_000, rounds: 1})
	b := r.File("resp.txt").String()
	if rows := strings.Count(b, "\n|"); rows != 2+6+2+2 || strings.Count(b, throttle) != 4 || strings.Count(b, "| 1.00 |") < 2 || strings.Contains(b, "| 0 |") {
		t.Errorf("%d rows in\n%s", rows, b)
	}
}

// An answer that does not allow fails the run.
func TestWrongAnswersAreSeen(t *testing.T) {
	for name, answer := range map[string]any{incr: int64(0), throttle: []any{int64(1)}, check: map[any]any{"allowed": false, "rule": "api"}} {
		if c := (contestant{name: name}); c.right(answer) == nil {
			t.Errorf("%s: %v is taken for right", name, answer)
		}
	}
}
