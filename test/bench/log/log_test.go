package log

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/test/bench/internal/bench"
)

func TestRun(t *testing.T) {
	r := bench.Test(t)
	run(r, options{sizes: []int64{1000}, some: 500})
	b := r.File("log.txt").String()
	for _, p := range phases {
		if !strings.Contains(b, "| "+p.name+" ") {
			t.Errorf("%s is not in\n%s", p.name, b)
		}
	}
}
