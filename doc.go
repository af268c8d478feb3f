// Package weir decides whether a request may pass.
//
// One limit for every key of a program:
//
//	limiter, err := weir.NewLimiter(memory.New(memory.Options{}), weir.PerMinute(100))
//	ok, err := limiter.Allow(ctx, "alice")
//
// A [Limiter] also waits for units, takes up to n of them, looks, and gives back. A
// request with several limits is one call, [TakeAll], which charges all of them or none.
// Limits in front of an http.Handler are in package httplimit, and rules from a file in
// package engine.
//
// A unit is what a limit counts; a request costs one unit unless it says otherwise. A key
// is whoever is limited. A denial is an answer and never an error; an error never carries
// an answer.
//
// # Exactness
//
// The package is the arithmetic of the rate limiter. It reads no clock, takes no lock and
// does no I/O: every time in it is an argument, so every answer can be computed twice and
// compared. (Only [Limiter.WaitN], which has to wait, sets a timer.) Time is whole
// microseconds, and all numbers are integers below 2^53, so that a Redis script, whose
// numbers are float64, gets the same answers to the last unit. [Limit.Validate] denies a
// limit that could leave that range.
//
// # Stores
//
// Whoever writes a [Store] needs more: [Pending], [DecideAll] and [PeekAll] for the ops of
// a request, [State] and [Record] for what is kept of a key, [Numbers] for the arithmetic
// in another language, and the methods of [Compiled] that move a tail. Nobody else does.
package weir
