package counter

import "time"

// Retention is how long counts are kept. The zero value stands for the defaults. It
// bounds what a name can ever cost, so all processes that share counts should say the
// same.
type Retention struct {
	// Ever is after how long without a change a counter or a leaderboard without a
	// window is forgotten. Default 366 days.
	Ever time.Duration

	// Seconds, Minutes, Hours and Days are how many windows of a counter can be read,
	// the current one included. Default 3600, 1440, 720 and 366: an hour of seconds, a
	// day of minutes, a month of hours, a year of days. At most MaxHistory.
	Seconds, Minutes, Hours, Days int
}

// WithDefaults returns it with what it leaves out, for stores.
func (r Retention) WithDefaults() Retention {
	for _, field := range []struct {
		n         *int
		otherwise int
	}{{&r.Seconds, 3600}, {&r.Minutes, 1440}, {&r.Hours, 720}, {&r.Days, 366}} {
		if *field.n <= 0 {
			*field.n = field.otherwise
		}
		*field.n = min(*field.n, MaxHistory)
	}
	if r.Ever <= 0 {
		r.Ever = 366 * 24 * time.Hour
	}
	r.Ever = max(r.Ever, time.Second)
	return r
}

// Windows is how many windows are kept.
func (r Retention) Windows(w Window) int {
	return [...]int{Ever: 1, Second: r.Seconds, Minute: r.Minutes, Hour: r.Hours, Day: r.Days}[w]
}

// After is how long after its last change a counter may be forgotten: when nothing of
// it can be read any more. One window more is for days that are longer.
func (r Retention) After(w Window) time.Duration {
	if w == Ever {
		return r.Ever
	}
	return time.Duration(r.Windows(w)+1) * w.Width()
}

// BoardAfter is the same for a leaderboard.
func (r Retention) BoardAfter(w Window) time.Duration {
	if w == Ever {
		return r.Ever
	}
	return (BoardWindows + 1) * w.Width()
}
