// Package app puts a server together: options in, New, Start, Addrs, Reload, Stop.
//
// It is the only package that knows all the others. What belongs to a request is in
// those; here is what belongs to a process: what is opened in which order, what is
// undone when that fails half-way, and what has to be saved at the end.
package app
