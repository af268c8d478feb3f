// Package accuracy measures how often an algorithm judges a request wrongly,
// and how far it lets a client go beyond its limit.
//
// A request is judged wrongly if the answer differs from the exact one, given
// what the same algorithm has admitted to the same source in the last period:
// it should be admitted if those units and its own are no more than N. So an
// early mistake does not make every later answer a mistake, as it would if two
// limiters each went their own way.
//
// The sources of the generated traffic do not know of each other, so each is
// driven from its first request to its last before the next one begins. For
// arrivals at random this is the same as taking them in the order of time, and
// one state in one cache line is enough.
package accuracy
