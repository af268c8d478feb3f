// Package repo keeps the document of rules and its history: what that means, and what every
// place has in common. The packages below are the places.
package repo

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Version is the document of rules at one time. Whoever changes it names the version
// that they have read, and gets a [ConflictError] if it is not the latest any more.
type Version struct {
	Number  int64     // from 1; 0 is a document that was never written
	Time    time.Time // when it was written
	Author  string    // by whom, as far as that is known
	Summary string    // what changed, in a line
	Source  []byte    // the document, as it was written, not to be changed; nil in a history
}

// Draft is a document that somebody wants to write.
type Draft struct {
	Base    int64 // the version that they have read
	Author  string
	Summary string // "" is made up from what has changed
	Source  []byte
}

// Repository keeps the document of rules and its history. A version that cannot be
// compiled is never written; one that somebody puts there by other means is reported
// and not used. Package repotest is the suite that every repository must pass.
type Repository interface {
	// Current returns the latest version that can be used.
	Current(ctx context.Context) (Version, error)

	// Write makes the draft the latest version, and returns it. The error is a
	// *ConflictError if its base is not what Current returns, or an *InvalidError
	// if it cannot be compiled. After any other error it may have been written;
	// Current tells.
	Write(ctx context.Context, d Draft) (Version, error)

	// History returns the versions that are kept, the latest first, without their
	// sources.
	History(ctx context.Context) ([]Version, error)

	// Find returns a version that is kept, or ErrNoVersion.
	Find(ctx context.Context, number int64) (Version, error)

	// Watch calls changed with the latest version, and again with every later one,
	// until the context ends, which is its error. Versions that follow quickly upon
	// each other may be left out, but never the last.
	//
	// An error is what keeps the document from being used, or from being read. It is
	// told once, with the version that stays in force; that version is told again,
	// without an error, when the trouble is over. A version comes without an error
	// before it comes with one: who installs what comes without, and reports the
	// others, does it right. Calls are one after the other.
	Watch(ctx context.Context, changed func(Version, error)) error
}

// ErrNoVersion is a version that is not kept, or never was.
var ErrNoVersion = errors.New("rules: there is no such version; it may be too old to be kept")

// ConflictError is a draft that was based on what is not the latest version any more.
type ConflictError struct {
	Base    int64
	Current Version // with its source
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("rules: version %d is not the latest any more, %d is; read it, and make your change again", e.Base, e.Current.Number)
}

// Bounds on what a repository keeps.
const (
	MaxHistory = 100 // versions
	MaxAuthor  = 200 // bytes
)
