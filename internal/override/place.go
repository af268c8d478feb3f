package override

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// Place stores the document, for one process or for many. Every implementation must pass
// the tests of package overridetest.
type Place interface {
	// Read returns the document, which is empty if there is none. If the document still has
	// the known revision, changed is false.
	Read(ctx context.Context, known Revision) (source []byte, changed bool, err error)

	// Write replaces the document. If the stored document does not have the revision base,
	// the error is ErrChanged. After any other error, the document may have been written;
	// call Read to find out.
	Write(ctx context.Context, base Revision, source []byte) error

	// Watch calls look at once and soon after every change, until the context ends. It
	// returns the error of the context. It may also call look without a change.
	Watch(ctx context.Context, look func()) error
}

// Revision identifies the content of a document. It is "" if there is no document.
type Revision string

// RevisionOf returns the revision of a document.
func RevisionOf(source []byte) Revision {
	if len(source) == 0 {
		return ""
	}
	sum := sha256.Sum256(source)
	return Revision(hex.EncodeToString(sum[:]))
}

// Unknown differs from the revision of every document.
const Unknown Revision = "unknown"

// ErrChanged is returned if another writer changed the document first.
var ErrChanged = errors.New("override: the overrides have changed meanwhile; read them again")
