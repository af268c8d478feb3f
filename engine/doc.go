// Package engine judges requests: rules and a store in, a verdict out.
//
//	e, err := engine.New(engine.Options{Store: store})
//	e.Install(table)
//	var v engine.Verdict
//	err = e.Check(ctx, &request, &v)
//
// Every rule that matches applies. All of their limits are charged in one call of
// the store, or none: a request that one rule refuses costs nothing anywhere. Shadow
// rules are charged and reported like the others, after them, and never refuse.
//
// # When the store is gone
//
// Each rule says what happens then: open lets its requests pass, closed refuses
// them, local goes on in this process with its share of the limit, from what was
// last seen of the busiest clients. One closed rule refuses, whatever the others
// say. The verdict tells that it is degraded. That is no error: Check fails only when
// its context ends or the request makes no sense.
package engine
