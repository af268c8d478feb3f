// Package redis keeps counts in Redis, where any number of processes share them.
//
//	store, err := redis.New(client, redis.Options{})
//
// A call is one script, by Redis's own clock, that does everything or nothing. Only a
// call for counters of several groups (or for several without one) is split on a
// cluster, one script a group: each does everything or nothing, and if one fails,
// others may have been done. A prefix with a hash tag, as in "{app}:", puts everything
// on one node instead.
//
// Nothing is sent twice that may have been done: a client should have DisableRetry set.
// A call ends within its timeout, with counter.ErrUnavailable if there was no answer.
//
// # Keys
//
// With the prefix "weir:counter:" they are
//
//	c:WINDOW:ZONE{NAME}         a counter: a hash of its windows
//	c:WINDOW:ZONE:NAME{GROUP}   a counter in a group
//	i{SEQUENCE}                 the last number of a sequence
//	b:WINDOW:ZONE:…{NAME}       a leaderboard: eight sorted sets in a ring, and a hash
//	s:SECONDS:…{NAME}           a sliding one: the sum, 21 steps in a ring, and a hash
//	h:SECONDS:…{NAME}           a hot list: the same, what is hot, and events
//
// where braces, colons and per cent signs in names are written %7B, %7D, %3A and %25.
// Every key expires some time after nothing of it can be read any more. A Redis that is
// full and evicts keys takes counts away before that.
package redis
