package clients

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

func TestRun(t *testing.T) {
	r := bench.Test(t)
	f := measure(r, 2500)
	if f.took <= 0 || f.start <= 0 || f.importing <= 0 || f.inRedis < 50 || f.inRedis > 2000 || f.inDirectory < 50 || f.inDirectory > 2000 || f.started <= 0 {
		t.Errorf("%+v", f)
	}
	write(r, f)
	if b := r.File("clients.txt").String(); !strings.Contains(b, "| 2 500 clients ") || !strings.Contains(b, "2,500 added") {
		t.Errorf("%s", b)
	}
}

// An import that has not added all clients fails the run.
func TestIncomplete(t *testing.T) {
	for _, said := range []string{"", "2,499 added, 0 changed, 0 deleted, 0 unchanged, in 1s", "12,500 added, 0 changed, 0 deleted, 0 unchanged, in 1s"} {
		scope := testkit.Must(testkit.NewScope("clients"))(t)
		err := scope.Try(func() { write(bench.Test(scope), figures{clients: 2500, said: said}) })
		if scope.Close(); err == nil || !strings.Contains(err.Error(), "the import of 2500 clients said") {
			t.Errorf("%q: %v", said, err)
		}
	}
}
