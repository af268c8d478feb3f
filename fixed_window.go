package weir

// A fixed window remembers one count.
//
//	Fresh  the end of the window
//	A      units in it

func (v *view) lookFixedWindow() {
	switch {
	case v.now < v.old.Fresh:
		v.pending = v.old // however long the window is: the limit may have changed meanwhile
	case v.c.calendar != nil:
		v.pending.Fresh = v.c.calendar.around(v.now)[2]
	default:
		period := Micros(v.c.period)
		v.pending.Fresh = v.now - v.now%period + period
	}
	v.free = v.c.limit.N - v.pending.A
}

func (v *view) chargeFixedWindow(cost int64, debt bool) State {
	s := v.pending
	s.A = counted(s.A, cost, debt)
	return s
}

func (v *view) waitFixedWindow() Micros { return v.pending.Fresh - v.now }

func (c *Compiled) refundFixedWindow(s State, receipt Micros, cost int64) State {
	if receipt != s.Fresh && receipt != Latest {
		return s // its window is over
	}
	if s.A -= min(s.A, cost); s.A == 0 {
		return State{}
	}
	return s
}
