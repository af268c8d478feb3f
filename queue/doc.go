// Package queue is the other half of the leaky bucket: work that is accepted now and
// done at a constant pace.
//
// Where a limit refuses what comes too fast, a queue keeps it. [Store.Push] accepts
// work until the queue is full, and [Run] does it, on any number of workers in any
// number of processes, which together begin no more than N in a Period, one by one.
//
//	store, err := memory.New(map[string]queue.Settings{
//		"mail": {N: 10, Period: time.Second, Capacity: 5000},
//	}, memory.Options{})
//	place, err := store.Push(ctx, "mail", queue.Work{Payload: letter})
//	err = queue.Run(ctx, store, "mail", send, queue.RunOptions{Workers: 4})
//
// Package queue/memory keeps queues in the process, queue/redis where many processes
// share them. They mean the same, to the microsecond.
//
// # Promises
//
//   - Pace: releases are at least Period/N apart, exactly, by the clock of the store.
//     The k-th of a full queue leaves k × Period/N after the first, rounded up to a
//     microsecond, as from a leaky_bucket with shape.
//   - Order: what is ready leaves in the order in which it was pushed.
//   - At least once: work that was accepted is tried until it is acknowledged, or has
//     failed MaxTries times. It may be done twice: by a worker that was too slow to
//     say so, or was taken for dead.
//   - What has failed for good is kept in a list of dead letters for somebody to look at.
//
// # Words
//
// An item is released when a worker gets a lease of it. The lease ends with Ack (done),
// Nack (failed), Return (not begun), or by itself when its visibility time is over;
// then the item is ready again. A lease that is ended is lost to whoever held it.
package queue
