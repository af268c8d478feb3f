package main

import (
	"strings"
	"testing"

	"github.com/weirhq/weir/test/bench/internal/machine"
)

func TestMeasure(t *testing.T) {
	// redis-benchmark counts milliseconds, so a round must have more than one.
	o := options{connections: 3, pipeline: 4, keys: 10, commands: 12_000, rounds: 3}
	figures := measure(t, o, func(int, int, string) {})
	if len(figures) != 6 {
		t.Fatalf("%d figures", len(figures))
	}
	for _, f := range figures {
		if f.rate <= 0 || f.name == incr && f.ratio != 1 {
			t.Errorf("%+v", f)
		}
	}
	var b strings.Builder
	if err := writeTable(&b, machine.Describe(), o, figures); err != nil || strings.Count(b.String(), throttle) != 4 {
		t.Errorf("%s, %v", &b, err)
	}
}
