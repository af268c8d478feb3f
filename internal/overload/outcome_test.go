package overload

import (
	"context"
	"testing"
	"time"
)

func TestOutcomeOf(t *testing.T) {
	here := t.Context()
	left, leave := context.WithCancel(here)
	leave()
	late, cancel := context.WithDeadline(here, time.Unix(0, 0))
	defer cancel()
	for _, c := range []struct {
		ctx    context.Context
		ended  bool
		status int
		want   Outcome
	}{
		{here, true, 200, Success},
		{here, true, 0, Success}, // nothing was written, so it is 200
		{here, true, 429, Success},
		{here, true, 500, Success}, // an error of its own, at any load
		{here, true, 502, Failure},
		{here, true, 503, Failure},
		{here, true, 504, Failure},
		{here, false, 200, Failure}, // torn
		{left, true, 503, Ignored},
		{left, false, 200, Ignored},
		{late, true, 200, Failure},
		{late, false, 200, Failure},
	} {
		if got := OutcomeOf(c.ctx, c.ended, c.status); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
