package accuracy

import (
	"math/rand/v2"
	"time"

	"github.com/weirhq/weir"
)

// Attack is a client who knows where the windows are and reads every answer: it
// takes all it can at one instant, and from then on each unit at the very
// microsecond at which it is to be had. The first source begins at the last
// microsecond of a window; the others spread over the window, and a few begin
// with half of what they could have.
func Attack(sources int, n int64) Traffic {
	const periods = 6
	return Traffic{
		Name:    "attack",
		About:   "clients who take N at the worst moment of a window, then every unit at the microsecond at which it is to be had",
		N:       n,
		Period:  time.Minute,
		Sources: sources,
		source: func(i int, _ *rand.Rand, take func(weir.Micros) weir.Decision) {
			period := micros(time.Minute)
			start := dawn + period - 1 - period*weir.Micros(i)/weir.Micros(sources)
			now, first := start, int64(0)
			if i%4 == 3 {
				first = n / 2
			}
			for range first {
				take(now)
			}
			if first > 0 {
				now += period / 3
			}
			for now < start+periods*period {
				if d := take(now); !d.Allowed {
					now += max(1, micros(d.RetryAfter))
				}
			}
		},
	}
}
