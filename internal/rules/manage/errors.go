package manage

import (
	"errors"
	"fmt"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/trust"
)

// Errors of an [Editor], besides those of package rule.
var (
	// ErrBusy is returned if other writers were faster too often.
	ErrBusy = errors.New("manage: too many other changes of the rules are in progress; try again")

	// ErrEmpty is returned for an empty document, which is probably a mistake.
	ErrEmpty = errors.New(`manage: the document has no rules; to remove all rules, write "rules: []"`)
)

// OutdatedError reports that the rules have changed since the writer read them.
type OutdatedError struct{ Current int64 }

func (e *OutdatedError) Error() string {
	return fmt.Sprintf("manage: the rules have changed; the latest version is %d; read it and make the change again", e.Current)
}

// ExistsError reports that a rule with this id already exists.
type ExistsError struct{ ID string }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("manage: the rule %s already exists; choose another id, or replace it", e.ID)
}

// UnappliedError reports that a version was written, but this instance could not apply it.
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

// RightError reports that a token is not good for a call: it lacks a right, or the right has
// patterns that do not match.
type RightError struct {
	Holder string
	Has    trust.Rights
	Needs  trust.Rights
	Beyond *engine.PermitError // what the patterns do not match; nil if there is no such right
}

func (e *RightError) Error() string { return "manage: " + e.Detail() }

// Detail is a sentence for the caller, with a remedy.
func (e *RightError) Detail() string {
	if e.Beyond != nil {
		return fmt.Sprintf("The token of %s has the right %s, but not for the rule %s and the client %.200q; send a request that its patterns match, or extend these.", e.Holder, e.Needs, e.Beyond.Rule, e.Beyond.Key)
	}
	return fmt.Sprintf("The token of %s has the rights %s; use one with the right %s.", e.Holder, e.Has, e.Needs)
}

// TooOftenError reports too many calls, or too many wrong tokens, from an address.
type TooOftenError struct{ Verdict *engine.Verdict }

func (e *TooOftenError) Error() string {
	return "manage: too many calls from this address; wait, then try again"
}

// FieldError reports an invalid value. The detail is a sentence that begins with
// the name of the field and ends with a remedy.
type FieldError struct{ Field, Detail string }

func (e *FieldError) Error() string { return "manage: " + e.Detail }
