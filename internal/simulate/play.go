package simulate

import "github.com/weirhq/weir"

// outcome is what became of each request.
type outcome struct {
	admitted []bool
	delay    []weir.Micros // nil if the limit does not shape
}

// released is when the i-th request, which was admitted, left.
func (o *outcome) released(i int, requests []Request) weir.Micros {
	if o.delay == nil {
		return requests[i].At
	}
	return requests[i].At + o.delay[i]
}

// play asks one limit about all requests. There is one op a request, so it can
// ask the arithmetic itself, with no store between.
func play(limit *weir.Compiled, requests []Request) outcome {
	o := outcome{admitted: make([]bool, len(requests))}
	if limit.Limit().Shape {
		o.delay = make([]weir.Micros, len(requests))
	}
	keys := make(map[string]*weir.Record)
	for i := range requests {
		r := &requests[i]
		key := keys[r.Key]
		if key == nil {
			key = new(weir.Record)
			keys[r.Key] = key
		}
		op := weir.Op{Key: r.Key, Limit: limit, Cost: r.Cost, MaxDelay: r.MaxDelay}
		next, d := op.Decide(key.State, key.Tail, r.At)
		key.Keep(limit, next)
		o.admitted[i] = d.Allowed
		if o.delay != nil {
			o.delay[i] = weir.Micros(d.Delay.Microseconds())
		}
	}
	return o
}
