package adaptive

import "testing"

func TestOutcomeOf(t *testing.T) {
	for _, c := range []struct {
		left, ended bool
		status      int
		want        Outcome
	}{
		{false, true, 200, Success},
		{false, true, 0, Success}, // nothing was written, so it is 200
		{false, true, 429, Success},
		{false, true, 500, Success}, // an error of its own, at any load
		{false, true, 502, Failure},
		{false, true, 503, Failure},
		{false, true, 504, Failure},
		{false, false, 200, Failure}, // torn
		{true, true, 503, Ignored},
		{true, false, 200, Ignored},
	} {
		if got := OutcomeOf(c.left, c.ended, c.status); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
