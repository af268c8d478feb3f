package manage

import (
	"errors"
	"fmt"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/bearer"
)

// Errors of an [Editor], besides those of package rule.
var (
	// ErrBusy is that others write all the time, and a change found no place.
	ErrBusy = errors.New("manage: too many other changes of the rules are in progress; try again")

	// ErrEmpty is a document with nothing in it, which is hardly what was meant.
	ErrEmpty = errors.New(`manage: the document has no rules; to remove all rules, write "rules: []"`)
)

// OutdatedError is that the rules are not what the writer has read.
type OutdatedError struct{ Current int64 }

func (e *OutdatedError) Error() string {
	return fmt.Sprintf("manage: the rules have changed; the latest version is %d; read it and make the change again", e.Current)
}

// ExistsError is a rule that was to be new, and is there already.
type ExistsError struct{ ID string }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("manage: the rule %s already exists; choose another id, or replace it", e.ID)
}

// UnappliedError is that a version was written, and could not be put into force here.
type UnappliedError struct {
	Version int64
	Err     error
}

func (e *UnappliedError) Error() string {
	return fmt.Sprintf("manage: version %d is stored, but this instance could not apply it: %v", e.Version, e.Err)
}

func (e *UnappliedError) Unwrap() error { return e.Err }

// Errors of a [Guard].
var (
	ErrNoToken    = errors.New("manage: a token is required; send it as a bearer token")
	ErrWrongToken = errors.New("manage: unknown token; send one from the server's token file")

	ErrWrongSession = errors.New("manage: unknown session; sign in again")
	ErrSessionOver  = errors.New("manage: the session is over; sign in again")
)

// ScopeError is a token that is not good for what was called.
type ScopeError struct {
	Holder     string
	Has, Needs bearer.Scope
}

func (e *ScopeError) Error() string {
	return fmt.Sprintf("manage: the token of %s has the scope %s, but the scope %s is required; send a token with the scope %s", e.Holder, e.Has, e.Needs, e.Needs)
}

// TooOftenError is that an address has called too often, or tried too many tokens.
type TooOftenError struct{ Verdict *engine.Verdict }

func (e *TooOftenError) Error() string {
	return "manage: too many calls from this address; wait, then try again"
}

// FieldError is a value that cannot be used. The detail is a sentence that begins with
// the name of the field and ends with a remedy.
type FieldError struct{ Field, Detail string }

func (e *FieldError) Error() string { return "manage: " + e.Detail }
