package queue

import (
	"errors"
	"fmt"

	"github.com/weirhq/weir"
)

var (
	// ErrFull is what Push returns when the queue holds as much as it may. Nothing
	// was accepted.
	ErrFull = errors.New("queue: it is full; try again later")

	// ErrNoQueue is a queue that was not declared when the store was made.
	ErrNoQueue = errors.New("queue: there is no such queue; declare it where the store is made")

	// ErrLost is a lease that is the caller's no more: it has ended, or its time was
	// over and somebody else has the item now.
	ErrLost = errors.New("queue: the lease is lost; leave the item to whoever has it now")

	// ErrUnavailable is a store that does not answer. Whether it has done what it was
	// asked is not known. To push again is safe with an ID.
	ErrUnavailable = errors.New("queue: the store does not answer")

	// ErrClosed is a store that was closed.
	ErrClosed = errors.New("queue: the store is closed")
)

// Bury marks the error of a handler as one that another try cannot mend: the item is a
// dead letter at once.
func Bury(err error) error {
	if err == nil {
		return nil
	}
	return &buried{err}
}

type buried struct{ error }

func (b *buried) Unwrap() error { return b.error }

func isBuried(err error) bool {
	var b *buried
	return errors.As(err, &b)
}

func invalid(field, format string, args ...any) error {
	return &weir.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
