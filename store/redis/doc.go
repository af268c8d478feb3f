// Package redis keeps limits in Redis, where any number of processes share them.
//
// The arithmetic of package weir is written a second time in Lua (script/*.lua)
// and proven equal: one script call decides all ops of a request, all or none,
// by Redis's own clock. Every key has a time to live that ends when its state is
// as good as new.
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
