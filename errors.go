package weir

import (
	"errors"
	"fmt"
)

// InvalidError reports invalid input: a limit that cannot be enforced, a key that
// cannot be stored, or a cost that cannot be charged. No decision was made.
type InvalidError struct {
	Field  string // the invalid field, as rule files spell it: "burst", "key"
	Reason string // what is wrong, and the remedy
}

func (e *InvalidError) Error() string { return "weir: " + e.Field + ": " + e.Reason }

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// ErrDeadline is returned by Wait, immediately, if the context's deadline comes before
// the next free slot. It wraps no context error, because the deadline has not passed.
var ErrDeadline = errors.New("weir: the context's deadline comes before the next free slot")

// ErrUnavailable is returned by a store, immediately, while it is unavailable. No
// decision was made and nothing was charged.
var ErrUnavailable = errors.New("weir: the store is unavailable")

// ErrBusy is returned by a store if this process, and not the store, was too busy for an
// answer in time: the call was not sent, or the process did not run. In the latter case it may
// have been charged.
var ErrBusy = errors.New("weir: this process was too busy to ask the store in time")

// ErrHoldsFull is returned by Reserve of a store that has no place for another hold.
// Nothing was charged. Use Take instead: the estimate then stays charged.
var ErrHoldsFull = errors.New("weir: the store has no place for another hold")

// ErrHoldExists is returned by Reserve of a store that has a hold with this id, or has had one
// lately. Nothing was charged. A store may deny the reservation instead, with a RetryAfter of 0.
var ErrHoldExists = errors.New("weir: there is a hold with this id already; use a random one")

// errShape is Allow on a limit that would have to be waited for.
var errShape = errors.New("weir: a shaping limit delays requests; use Take or Wait instead of Allow")
