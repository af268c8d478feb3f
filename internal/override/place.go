package override

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// Place is where the document is kept, for one process or for many. Package overridetest is
// the suite that every place must pass.
type Place interface {
	// Read returns the document, which is empty if there is none. If its revision is the
	// known one, it returns false instead.
	Read(ctx context.Context, known Revision) (source []byte, changed bool, err error)

	// Write puts a document in the place of the one with this revision. The error is
	// ErrChanged if that is not what is there. After any other error it may have been
	// written; Read tells.
	Write(ctx context.Context, base Revision, source []byte) error

	// Watch calls look, and again soon after every change, until the context ends, which is
	// its error. It may call without a change.
	Watch(ctx context.Context, look func()) error
}

// Revision tells documents apart. That of no document is "".
type Revision string

// RevisionOf returns the revision of a document.
func RevisionOf(source []byte) Revision {
	if len(source) == 0 {
		return ""
	}
	sum := sha256.Sum256(source)
	return Revision(hex.EncodeToString(sum[:]))
}

// Unknown is the revision of none.
const Unknown Revision = "unknown"

// ErrChanged is that somebody else was faster.
var ErrChanged = errors.New("override: the overrides have changed meanwhile; read them again")
