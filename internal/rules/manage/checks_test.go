package manage

import (
	"testing"
	"testing/synctest"
	"time"
)

// A flood of lines becomes a few, and the first of the next period tells how many were left out.
func TestSparse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Sparse{Lines: 3, Every: time.Minute}
		for period, want := range []int64{0, 97} {
			logged := 0
			for i := range 100 {
				unlogged, ok := s.Next()
				if ok {
					logged++
				}
				if i == 0 && (unlogged != want || !ok) || i > 0 && unlogged != 0 {
					t.Errorf("period %d, line %d: %d were left out, logged %v", period, i, unlogged, ok)
				}
			}
			if logged != 3 {
				t.Errorf("period %d has %d lines", period, logged)
			}
			time.Sleep(time.Minute)
		}
	})
}

// A clock that was set back does not silence the log until it has caught up.
func TestSparseClockSetBack(t *testing.T) {
	s := Sparse{Lines: 1, Every: time.Minute}
	s.begun.Store(time.Now().Add(time.Hour).UnixNano())
	s.logged.Store(1)
	if _, ok := s.Next(); !ok {
		t.Error("no line is logged")
	}
}
