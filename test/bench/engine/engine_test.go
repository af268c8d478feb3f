package engine

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/test/bench/internal/machine"
)

func TestRun(t *testing.T) {
	figures := Run(t, Options{Keys: 10, Checks: 500, Rounds: 3}, func(int, int, string) {})
	if len(figures) != 6 {
		t.Fatalf("%d figures", len(figures))
	}
	for _, f := range figures {
		if f.Nanos <= 0 || f.Name == peer && f.Ratio != 1 {
			t.Errorf("%+v", f)
		}
	}
	var b strings.Builder
	if err := WriteTable(&b, machine.Describe(), Options{}, figures); err != nil || strings.Count(b.String(), "weir engine") != 2 {
		t.Errorf("%s, %v", &b, err)
	}
}

// A contestant that denies somebody fails the run.
func TestDenialsAreSeen(t *testing.T) {
	never := func() func(int) bool { return func(i int) bool { return i != 3 } }
	if _, err := measure("never", never, 1, Options{Keys: 10, Checks: 1000}); err == nil {
		t.Error("denials went unnoticed")
	}
}

func TestRunKeys(t *testing.T) {
	figures := RunKeys(t, Options{Keys: 10, Checks: 300, Rounds: 3}, func(int, int, string) {})
	if len(figures) != 2*len(keyed) {
		t.Fatalf("%d figures", len(figures))
	}
	for i, f := range figures {
		if f.Nanos <= 0 || f.Ratio <= 0 || i%len(keyed) == 0 && f.Ratio != 1 {
			t.Errorf("%+v", f)
		}
	}
	var b strings.Builder
	if err := WriteKeys(&b, machine.Describe(), Options{}, figures); err != nil || strings.Count(b.String(), "[user, route]") != 4 {
		t.Errorf("%s, %v", &b, err)
	}
}
