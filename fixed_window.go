package weir

// A fixed window remembers one count.
//
//	Fresh  the end of the window
//	A      units in it

func (v *view) lookFixedWindow() {
	v.pending = v.c.window(v.old, v.now)
	v.free = v.c.limit.N - v.pending.A
}

// window returns the window of an instant, with what is in it.
func (c *Compiled) window(s State, now Micros) State {
	switch {
	case now < s.Fresh:
		return s // however long the window is: the limit may have changed meanwhile
	case c.calendar != nil:
		return State{Fresh: c.calendar.around(now)[2]}
	}
	period := Micros(c.period)
	return State{Fresh: now - now%period + period}
}

func (v *view) chargeFixedWindow(cost int64, debt bool) State {
	s := v.pending
	s.A = counted(s.A, cost, debt)
	return s
}

func (v *view) waitFixedWindow() Micros { return v.pending.Fresh - v.now }

func (c *Compiled) refundFixedWindow(s State, receipt Micros, cost int64) State {
	if receipt != s.Fresh && receipt != Micros(Latest) {
		return s // its window is over
	}
	if s.A -= min(s.A, cost); s.A == 0 {
		return State{}
	}
	return s
}
