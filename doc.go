// Package weir is a rate limiter: it decides whether a request is allowed.
//
//	limiter, err := weir.NewLimiter(memory.New(memory.Options{}), weir.PerMinute(100))
//	ok, err := limiter.Allow(ctx, "alice")
//
// Most programs need no more than this:
//
//   - To limit an http.Handler, use package httplimit.
//   - To limit anything else by one limit, use [NewLimiter] and [Limiter.Allow]. If the client
//     should know when to retry, use [Limiter.Take]; to slow down instead of denying, [Limiter.Wait].
//     The documentation of [Limiter] says what its other methods are for.
//   - To check several limits in one call, and charge all of them or none, use [TakeAll].
//   - To use rules from a file, use package engine.
//
// A limit counts units, and a request costs one unit by default. A key identifies a
// client. A denial is a [Decision], not an error; an error comes without a decision.
//
// # Exactness
//
// The package reads no clock, takes no lock and does no I/O. Every time is an argument,
// so tests can compute each answer twice and compare. (Only [Limiter.WaitN] sets a
// timer.) Times are whole microseconds and all numbers are integers below 2^53. So a
// Redis script, which computes with float64, returns exactly the same answers.
// [Limit.Validate] rejects limits that could exceed this range.
//
// # Stores
//
// Only authors of a [Store] need the rest. [Pending], [DecideAll] and [PeekAll] process
// the ops of a request. [State] and [Record] hold the usage of a key. [Numbers] help to
// write the arithmetic in another language. TailLen, Commit, MoveTail and Readable of
// [Compiled] are for algorithms that keep more than a State.
package weir
