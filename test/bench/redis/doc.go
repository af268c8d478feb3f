// Package redis measures what one check costs when the limits are in Redis, for
// weir and its peers side by side, on one server of this machine.
//
// Callers are a closed loop: each asks again as soon as it was answered. All
// contestants get the same keys, limits, goroutines and walks, and as much time;
// their rounds take turns, in another order each time, and a figure is the median
// of the rounds. Every answer is counted, and one that is not as expected fails
// the run.
package redis
