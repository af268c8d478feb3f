package engine

import (
	"bytes"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

func TestRun(t *testing.T) {
	r := bench.Test(t)
	o := options{keys: 10, rules: 50, checks: 100, rounds: 1}
	run(r, o)
	runLevels(r, o)
	for file, rows := range map[string]int{"engine.txt": 6, "keys.txt": 10, "levels.txt": 20} {
		if b := r.File(file).Bytes(); bytes.Count(b, []byte("\n|")) != 2+rows {
			t.Errorf("%s: %s", file, b)
		}
	}
}

// A contestant that denies somebody fails the run.
func TestDenialsAreSeen(t *testing.T) {
	never := contestant{"never", func() func(int) error {
		return func(i int) error { return bench.Allowed(weir.Decision{Allowed: i != 3}, nil) }
	}}
	scope := testkit.Must(testkit.NewScope("engine"))(t)
	defer scope.Close()
	if scope.Try(func() {
		options{keys: 10, checks: 1000, rounds: 1}.take(bench.Test(scope), "denials", 1, []contestant{never})
	}) == nil {
		t.Error("denials went unnoticed")
	}
}
