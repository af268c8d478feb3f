//go:build race

package testkit

// Race is whether the race detector is on, which makes everything slow and allocates. It finds
// nothing in what one goroutine does alone, so with it such tests do a part of their work; make test
// runs them without it, too.
const Race = true
