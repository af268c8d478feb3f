package main

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/test/bench/internal/machine"
)

func TestMeasure(t *testing.T) {
	o := options{rules: 3, keys: 50_000, rounds: 1, idle: time.Millisecond}
	figures := measure(t, o, func(int, int, string) {})
	if len(figures) != 5 {
		t.Fatalf("%d figures", len(figures))
	}
	for _, f := range figures[:4] {
		if f.took <= 0 || f.memory.Own <= 0 || f.memory.Own >= f.memory.Resident {
			t.Errorf("%+v", f)
		}
	}
	// What was saved is really read: 50,000 keys are 2.4 MB or more.
	if few, many := figures[0].memory.Own, figures[2].memory.Own; many < few+1_000_000 {
		t.Errorf("%d bytes with keys, %d without", many, few)
	}
	var b strings.Builder
	if err := writeTable(&b, machine.Describe(), o, figures); err != nil || !strings.Contains(b.String(), "| one rule, 50 000 keys ") {
		t.Errorf("%s, %v", &b, err)
	}
}
