package engine

import (
	"context"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Warning is that a client has reached a threshold of a rule's limit.
type Warning struct {
	Rule      *rule.Entry
	Key       string         // the client, as in Result.Key; valid during the call
	Compiled  *weir.Compiled // the limit
	Threshold int            // in percent
	Used      int64
	Limit     int64
	ResetAt   weir.Micros // when the client is fully reset, if it makes no more requests
}

// WarningObserver is an [Observer] that is also called when a client has reached a threshold
// of a rule: once per client and threshold until the client has reset, by the instance that
// was the first to see it. A process that ends meanwhile, or an answer of the store that is
// lost, can lose a warning.
type WarningObserver interface {
	Observer

	// ObserveWarning must be fast.
	ObserveWarning(Warning)
}

// Warning returns the highest threshold of the rule that the client's usage has reached, in
// percent, or 0.
func (r *Result) Warning() int {
	if n := r.reached(); n > 0 {
		return r.Rule.Warn[n-1]
	}
	return 0
}

// reached is how many thresholds of the rule the usage has reached.
func (r *Result) reached() (n int) {
	if !r.Asked {
		return 0
	}
	used := r.Used() * 100
	for n < len(r.Rule.Warn) && used >= r.Limit*int64(r.Rule.Warn[n]) {
		n++
	}
	return n
}

// warn tells observers of clients that have reached a threshold in the store. A unit of the store, the
// marker, keeps this from happening twice, on whichever instance; it is taken in a second call
// of the store, but only for requests at or above a threshold, and rarely for the same client.
//
// It goes by the usage as it is, not by what this request has added. So it also finds usage
// that was settled, and limits that were lowered; what was refunded and is used again was told.
func (e *Engine) warn(ctx context.Context, v *Verdict) {
	for i := range v.Results {
		r := &v.Results[i]
		n := r.reached()
		if n == 0 || r.Penalty || r.Look {
			continue
		}
		now, key := e.clock(), e.usageKey(r.Key, r.Compiled)
		if last, known := e.told.get(key); (!known || !last.isMarked(r, n, now)) && e.takeMarkers(ctx, v, r, n) {
			e.told.put(key, told{n, now, r.window()})
		}
	}
}

// takeMarkers takes the markers of the first n thresholds, and tells of those that were free. It
// reports whether the store has answered.
func (e *Engine) takeMarkers(ctx context.Context, v *Verdict, r *Result, n int) bool {
	v.ops = v.ops[:0]
	for _, percent := range r.Rule.Warn[:n] {
		marker, err := r.Rule.Marker(r.Compiled, percent)
		if err != nil {
			return true // the limit itself has no room for one
		}
		v.ops = append(v.ops, weir.Op{Key: r.Key, Limit: marker, Cost: 1})
	}
	var err error
	if v.decisions, err = e.store.Take(ctx, v.decisions[:0], v.ops...); err != nil {
		return false
	}
	for i, d := range v.decisions {
		if !d.Allowed {
			continue
		}
		for _, o := range e.warnObservers {
			o.ObserveWarning(Warning{
				Rule: r.Rule, Key: r.Key, Compiled: r.Compiled, Threshold: r.Rule.Warn[i],
				Used: r.Used(), Limit: r.Limit, ResetAt: r.ResetAt,
			})
		}
	}
	return true
}

// told is which thresholds of a client this instance has marked, so that the store is not asked at
// each request.
type told struct {
	thresholds int
	at         weir.Micros
	window     weir.Micros // of a fixed window, its end: in the next one, all markers are free again
}

// isMarked reports whether the first n thresholds need not be marked now.
func (t told) isMarked(r *Result, n int, now weir.Micros) bool {
	return n <= t.thresholds && t.window == r.window() && now >= t.at && now.Sub(t.at) < rule.MarkerSlack(r.Compiled)
}

// window is the end of a fixed window.
func (r *Result) window() weir.Micros {
	if r.Compiled.Algorithm() == weir.FixedWindow {
		return r.ResetAt
	}
	return 0
}
