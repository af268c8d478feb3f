package weir

import (
	"errors"
	"fmt"
)

// InvalidError is bad input: a limit that cannot be kept, a key that cannot be
// stored, a cost that makes no sense. The request was not judged.
type InvalidError struct {
	Field  string // the field at fault, as rule files spell it: "burst", "key"
	Reason string // what is wrong with it, and what to do about it
}

func (e *InvalidError) Error() string { return "weir: " + e.Field + ": " + e.Reason }

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// ErrDeadline is what Wait returns, at once, when the context's deadline comes
// before the slot does. It wraps no context error: the deadline has not passed.
var ErrDeadline = errors.New("weir: the context's deadline comes before the next free slot")

// ErrUnavailable is what a store returns, at once, while it knows that it cannot
// be asked. Nothing was judged and nothing was charged.
var ErrUnavailable = errors.New("weir: the store is not available")

// errShape is Allow on a limit that would have to be waited for.
var errShape = errors.New("weir: a shaping limit says how long to hold a request; use Take or Wait instead of Allow")
