// Package redis keeps queues in Redis, where any number of processes share them.
//
//	store, err := redis.New(client, map[string]queue.Settings{
//		"mail": {N: 10, Period: time.Second},
//	}, redis.Options{})
//
// Every call is one script, and Redis's own clock decides. What queue/memory does is
// written a second time in Lua (script/*.lua) and proven equal.
//
// # Keys
//
// With the prefix "weir:" the keys of a queue are
//
//	weir:queue{mail}:meta     a hash: the last number, the pace
//	weir:queue{mail}:work     a hash: item → payload
//	weir:queue{mail}:facts    a hash: item → tries, lease, ID and the like
//	weir:queue{mail}:ids      a hash: ID → item
//	weir:queue{mail}:ready    a sorted set of items, as are delayed, leased and dead
//	weir:queue{mail}:done     a sorted set of IDs that are remembered
//
// and the channel weir:queue{mail}:changed wakes workers. The braces put them all on one
// slot of a cluster.
//
// # What expires
//
// Work does not: what was accepted stays until it is done or deleted, however long that
// takes. It is bounded by the settings instead. An empty queue has only meta, for an hour
// or as long as its pace needs, and done, for as long as IDs are remembered. So Redis
// needs the maxmemory-policy noeviction, or one of volatile-*, which spare keys that do
// not expire. When memory runs out, a push is an error, and work that is there is still
// leased, done and acknowledged.
//
// Accepted means as much as Redis says: with appendonly yes and appendfsync always, work
// survives a crash of the server; with everysec, the last second may be lost; without a
// file, everything is. A replica that takes over has what had reached it.
//
// # Trouble
//
// A call ends within its timeout, and nothing is sent twice. After queue.ErrUnavailable
// it is not known whether it has happened. Push again with the same ID; acknowledge again,
// and take queue.ErrLost for success. Items of which the lease got lost on its way go to
// another worker when their time is over, and have been tried once.
package redis
