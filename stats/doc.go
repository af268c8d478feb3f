// Package stats remembers what happened: how many requests, how they were judged, how
// long it took, who came most often, and which limits would have been enough.
//
//	a, err := archive.NewMemory(archive.Options{})
//	r, err := stats.New(stats.Options{Archive: a})
//	e, err := engine.New(engine.Options{Store: store, Observer: r})
//	r.Install(table, 1) // first, so that every verdict finds its rule
//	e.Install(table, 1)
//	go r.Run(ctx)
//	summary, err := r.Summary(ctx, from, to)
//
// # The hot path
//
// A verdict costs a few tens of nanoseconds and no memory. What every request counts is
// in stripes, each behind a lock that nobody waits for: whoever finds one taken goes to
// the next. Under the lock everything is plain arithmetic. Once a second the stripes are
// exchanged for empty ones and added up in the background.
//
// Keys are copied into a small buffer. When there are more of them than it holds, only
// one in 2, 4, 8 … is copied, chosen at random, and counts as many.
//
// # What is lost
//
// A process that is killed takes the current second along; of rankings, details and
// suggestions the current ten seconds. While Redis is away, [Options.MaxPending] is kept
// and sent afterwards; what is older is dropped, and [Recorder.Health] says how much.
package stats
