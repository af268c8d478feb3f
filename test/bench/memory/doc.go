// Package memory measures what one check costs in memory, for weir and its
// peers side by side.
//
// All contestants get the same keys, the same limit, the same goroutines and
// the same walk over the keys. Their rounds take turns, in another order each
// time, so that whatever else the machine does hits all of them alike; a figure
// is the median of the rounds. In every round the answers are counted: a
// contestant that refused where nobody should be refused, or the other way
// round, has measured something else, and the run fails.
package memory
