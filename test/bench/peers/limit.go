package peers

import "time"

// Limit is what every contestant is asked to keep: N units per Period, N of
// them at once if nobody was there before.
type Limit struct {
	N      int
	Period time.Duration
}

// Month is a period in which nothing comes back while a run lasts.
const Month = 30 * 24 * time.Hour

// Exhaustible is the limit of those who are to be refused.
var Exhaustible = Limit{N: 100, Period: Month}

// Limit is what the contestant has to keep in a run over so many keys. If
// everything is to be admitted, it is a billion checks in all before one is
// refused, spread over the keys so that a key never recovers between two visits
// and is neither new nor used up, as that of a busy client.
func (c Contestant) Limit(keys int, admitted bool) Limit {
	switch {
	case !admitted:
		return Exhaustible
	case c.Admit != nil:
		return c.Admit(keys)
	}
	return Limit{N: max(1000, 1_000_000_000/keys), Period: Month}
}
