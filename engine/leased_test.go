package engine

import (
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Units on lease are not used, for thresholds and statistics.
func TestUsedBesideLeases(t *testing.T) {
	r := Result{Rule: &rule.Entry{Rule: &rule.Rule{Warn: []int{50, 80}}}, Asked: true, Leave: 5, Decision: weir.Decision{Limit: 100, Remaining: 15, Leased: 20}}
	if used, warning := r.Used(), r.Warning(); used != 60 || warning != 50 {
		t.Errorf("%d used, and a warning of %d %%", used, warning)
	}
}
