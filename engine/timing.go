package engine

import (
	"time"

	"github.com/weirhq/weir/rule"
)

// To read the clock takes a tenth of the time of a decision in memory. So the reading with
// which a decision begins is also the time by which such a store decides.

// timing is when a request was decided, by the clock that the engine reads.
type timing struct {
	began   time.Duration
	ended   time.Duration // 0 if nobody wanted to know
	follows bool
}

// Follow tells that the next request to the same engine arrived together with the last one,
// and that nothing was waited for since: it begins when that one was decided.
func (v *Verdict) Follow() { v.follows = true }

// read reads the clock: that of a store in memory, or the monotonic one, which takes half as
// long as to ask what time it is.
func (e *Engine) read() time.Duration {
	if e.memory != nil {
		return e.memory.Read()
	}
	return time.Since(e.born)
}

// begin notes when a request begins that is going to be charged.
func (e *Engine) begin(v *Verdict) {
	if v.began = v.ended; !v.follows || v.ended == 0 {
		v.began = e.read()
	}
	v.ended, v.follows = 0, false
}

// observe tells the observers of a request that was decided.
func (e *Engine) observe(req *rule.Request, v *Verdict) {
	if e.observer != nil {
		v.ended = e.read()
		e.observer.Observe(req, v, v.ended-v.began)
		if v.places > 0 {
			e.observeReached(v)
		}
	}
}
