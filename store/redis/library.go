package redis

import "math/bits"

// What differs if functions are called instead of scripts. A library is the arithmetic of the scripts as
// plain functions, lua/*.lua, which Redis 7 runs without running their definitions at every call. It is
// to take their place; so far only tests load and call it, so no other program contains it.

// function returns the entry for a request.
func (r *request) function() string {
	switch {
	case r.needs&needHolds != 0:
		return "holds"
	case r.form == columns:
		return "requests"
	}
	switch r.needs &^ needBack {
	case needBucket:
		return "bucket"
	case needFixedWindow:
		return "fixed_window"
	case needSlidingWindow:
		return "sliding_window"
	case needSlidingLog:
		return "log"
	default:
		return "sub_windows"
	}
}

// jointTake is sent for ops to take of which some have to know of others.
const jointTake = 10

// word is what is sent for the verb of a check.
func (c *check) word(library bool) int64 {
	if library && c.verb == take && !c.isPlain() {
		return jointTake
	}
	return int64(c.verb)
}

// entryNumbers are how the entries of a log with this period are made, instead of what a bucket has:
// how many ranks an entry can tell apart, what its second half has of a time, and after how long times
// begin again.
func entryNumbers(period int64) (ranks, digits, span int64) {
	timeBits := max(43, bits.Len64(uint64(period)))
	return 1 << (64 - timeBits), 1 << (timeBits - 32), 1 << timeBits
}
