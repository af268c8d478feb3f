package start

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/test/bench/internal/bench"
)

func TestRun(t *testing.T) {
	r, o := bench.Test(t), options{rules: 3, keys: 50_000, rounds: 1, idle: time.Millisecond}
	names, starts, idle := measure(r, o)
	for i, f := range append(starts, idle) {
		if i < len(starts) && f.took <= 0 || f.memory.Own <= 0 || f.memory.Own >= f.memory.Resident {
			t.Errorf("%+v", f)
		}
	}
	// What was saved is really read: 50,000 keys are 2.4 MB or more.
	if few, many := starts[0].memory.Own, starts[2].memory.Own; many < few+1_000_000 {
		t.Errorf("%d bytes with keys, %d without", many, few)
	}
	write(r, o, names, starts, idle)
	if b := r.File("start.txt").String(); len(starts) != 4 || !strings.Contains(b, "| one rule, 50 000 keys ") {
		t.Errorf("%s", b)
	}
}
