// Package metrics counts what an engine decides, for Prometheus.
//
//	m, err := metrics.New(metrics.Options{})
//	e, err := engine.New(engine.Options{Store: store, Observers: []engine.Observer{m}})
//	m.Install(table, 1) // first, so that every verdict finds its rule
//	e.Install(table, 1)
//	mux.Handle("GET /metrics", m.Handler())
//
// A verdict costs some tens of nanoseconds and no memory: a rule's counters are looked
// up by its pointer, and labels are text only when somebody reads them.
//
// No label has anything that a client sent. Rules are labelled by their ids, and a
// rule that is gone takes its series along; routes and upstreams come from the
// program, and their number is bounded all the same. docs/metrics.md has the list.
package metrics
