// Package counter counts for applications: page views and likes, leaderboards, what is
// hot at the moment, and what each user has done.
//
//	store := memory.New(memory.Options{})
//	visits := counter.Key{Name: "visits", Window: counter.Day, Zone: shanghai}
//	today, err := store.Add(ctx, counter.Delta{Key: visits, By: counter.One})
//
// A [Store] keeps the counts: package counter/memory in the process, package counter/redis
// in Redis, where any number of processes share them. They mean exactly the same, and a
// call does all of what it says, or nothing. [Actions] and [Watch] are built on any store.
//
// A counter only counts. Where something is to be refused from some number on, a rule
// of package rule is the better choice: reading a count and then deciding lets two
// requests at once see the last free place.
//
// # Exactness
//
// An [Amount] is a whole number of millionths, so that 0.1 added ten times is 1, in
// memory and in Redis. What would leave the range is refused with [ErrRange], not
// rounded.
//
// # Bounds
//
// Names, members and batches have a largest size, leaderboards and hot lists a largest
// number of members, and everything is forgotten some time after it was last written:
// see [Retention]. A store in memory has a largest size as a whole.
package counter
