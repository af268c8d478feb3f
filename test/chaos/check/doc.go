// Package check judges a chaos run. It knows the answers that clients got, when they asked
// and when the answers came, the faults, and when the store itself was well. It knows nothing
// of what happens inside weir.
//
// When a request was decided, nobody outside can say: only that it was after it was sent
// and before its answer came. So a stretch of time holds for certain only those requests that
// were sent and answered within it, and a limit is broken for certain if these are too many.
package check
