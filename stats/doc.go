// Package stats remembers what happened: how many requests, how they were judged, how
// long it took, who came most often, and which limits would have been enough.
//
//	a, err := memory.New(memory.Options{}) // of stats/archive/memory
//	r, err := stats.New(stats.Options{Archive: a})
//	e, err := engine.New(engine.Options{Store: store, Observers: []engine.Observer{r}})
//	e.Install(table, 1)
//	go r.Run(ctx)
//	summary, err := r.Summary(ctx, from, to)
//
// # The hot path
//
// What a rule said and how long that took are in one number, and so one atomic addition
// counts both; a request that was judged by one rule is counted by that alone. There are
// several stripes of these numbers, so that cores seldom meet. Once a second they are
// taken and added up in the background.
//
// What is left, who came and how much of a limit was in use, is copied into a small
// buffer. When there is more than it holds, only one in 2, 4, 8 … is copied, chosen by
// chance, and counts as many.
//
// # What is lost
//
// A process that is killed takes the current second along; of rankings, details and
// suggestions the current ten seconds. While Redis is away, [Options.MaxPending] is kept
// and sent afterwards; what is older is dropped, and [Recorder.Health] says how much.
package stats
