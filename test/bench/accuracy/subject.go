package accuracy

import "github.com/weirhq/weir"

// Subject is a limiter on trial, for one source at a time.
type Subject interface {
	// Take asks for one unit at an instant; instants do not go back.
	Take(now weir.Micros) weir.Decision

	// Forget makes it as new, for the next source.
	Forget()
}

// arithmetic is weir's own: the state of one key and nothing around it.
type arithmetic struct {
	op     weir.Op
	record weir.Record
}

func newArithmetic(limit *weir.Compiled) *arithmetic {
	return &arithmetic{op: weir.Op{Limit: limit, Cost: 1}}
}

func (a *arithmetic) Take(now weir.Micros) weir.Decision {
	next, d := a.op.Decide(a.record.State, a.record.Tail, now)
	a.record.Keep(a.op.Limit, next)
	return d
}

func (a *arithmetic) Forget() { a.record.State = weir.State{} }
