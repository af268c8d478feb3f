// Package redis keeps limits in Redis, where any number of processes share them.
//
//	store, err := redis.Open("redis://:password@localhost:6379")
//
// The arithmetic of package weir is written a second time in Lua (script/*.lua)
// and proven equal: one script call decides all ops of a request, all or none,
// by Redis's own clock. Every key has a time to live that ends when its state is
// as good as new. In a cluster, ops on several slots are taken at once and given
// back if one refuses.
//
// # Waiting
//
// Checks that arrive while a call is under way travel together in the next one. A
// check ends within its timeout whatever Redis does, and nothing that may have been
// charged is sent twice. After three calls without an answer everyone is told
// weir.ErrUnavailable at once, until a probe in the background is answered.
//
// # Keys
//
// A client's state is under
//
//	PREFIX NAME : KIND { KEY }
//
// without the spaces, for example "weir:login:F1m{203.0.113.7}": the prefix, the
// limit's name, a letter for the algorithm with its period, and the client's key,
// byte for byte. The braces put all limits of one client on one slot of a cluster.
package redis
