package engine

// AdaptiveLimit is the state of an adaptive limit of requests in flight.
type AdaptiveLimit struct {
	Limit, InFlight int
	Denied          uint64 // since the start
}

// AdaptiveObserver is an [Observer] that also shows adaptive limits.
type AdaptiveObserver interface {
	Observer

	// ObserveAdaptive is called once for each adaptive limit. State returns its state at any
	// time. Several limits can have one name.
	ObserveAdaptive(name string, state func() AdaptiveLimit)
}

// ObserveAdaptive tells the observers of an adaptive limit, for middleware.
func (e *Engine) ObserveAdaptive(name string, state func() AdaptiveLimit) {
	for _, o := range e.observers {
		if o, ok := o.(AdaptiveObserver); ok {
			o.ObserveAdaptive(name, state)
		}
	}
}
