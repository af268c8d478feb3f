package adaptive

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testoverload"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// A bubble exists only in a test, so Run runs this one, with these flags.
var (
	dir    = flag.String("tables", "", "where to write the tables; empty for nowhere, after one case")
	glance = flag.Bool("quick", false, "a first look only")
)

func TestTables(t *testing.T) {
	o := full
	switch {
	case *dir == "":
		o = options{kinds: []testoverload.Kind{testoverload.Even}, loads: []float64{2}, first: 1}
	case *glance:
		o = quick
	}
	rows := simulate(t, o)
	if _, _, _, missed := worst(rows, ours); missed > 0 {
		t.Errorf("weir misses %d aims", missed)
	}
	r := bench.Test(t)
	write(r, o, rows)
	for _, name := range Files {
		if r.File(name).Len() == 0 {
			t.Errorf("%s is empty", name)
		}
		if *dir != "" {
			testkit.OK(t, os.WriteFile(filepath.Join(*dir, name), r.File(name).Bytes(), 0o644))
		}
	}
}

// Two runs in virtual time are the same, with a limiter that reads the clock itself; and without
// a limiter the service fails, which shows that a failure would be seen.
func TestVirtualTime(t *testing.T) {
	c := testoverload.Cases(testoverload.Varied, servers, 2)[0]
	var figures []testoverload.Figure
	for _, who := range []contestant{contestants[2], contestants[2], contestants[0], contestants[ours]} {
		synctest.Test(t, func(*testing.T) { figures = append(figures, play(c, who)) })
	}
	if figures[0] != figures[1] || figures[0].Denied == 0 {
		t.Errorf("%+v", figures[:2])
	}
	if meets(c.Load, figures[2]) || !meets(c.Load, figures[3]) {
		t.Errorf("%+v", figures[2:])
	}
}
