// Package weir decides whether a request may pass.
//
// It is the vocabulary and the arithmetic of the rate limiter, and nothing
// else: a [Limit] says how much, [Op.Decide] says whether, a [Decision] says
// what to tell the client, and a [Store] remembers. The package reads no clock,
// takes no lock and does no I/O; every time in it is an argument, so every
// answer can be computed twice and compared. (Limiter.WaitN, which has to wait,
// sets a timer, and those who wait for one key stand in line.)
//
// Most programs need only a [Limiter]:
//
//	limiter, err := weir.NewLimiter(memory.New(memory.Options{}), weir.MustParseLimit("100/1m"))
//	ok, err := limiter.Allow(ctx, "alice")
//
// A request with several limits is one [Store] call, charged all or none. What
// only those need who write a store is said so: [Charge], [Settle], [Record],
// [State] and the methods of [Compiled] that move a tail.
//
// # Exactness
//
// Time is whole microseconds and all arithmetic is on integers below 2^53, so
// that a Redis script, whose numbers are float64, gets the same answers to the
// last unit. A limit that could leave that range is refused by
// [Limit.Validate], not rounded.
//
// # Words
//
// A unit is what a limit counts; a request costs one unit unless it says
// otherwise. A key is whoever is being limited. A denial is an answer, never an
// error; an error never carries a verdict.
package weir
