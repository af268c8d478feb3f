package repo

import (
	"context"
	"errors"
)

// Store keeps a document without a history, for one process or for many: compare and swap,
// without regard to what the document says. Every implementation must pass repotest.RunStore.
type Store interface {
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

// StoreOptions say what a store keeps.
type StoreOptions struct {
	Name string // of the document, of its file or key, and in messages
	Most int    // bytes that are read at most
}

// Revision identifies the content of a document. It is "" if there is no document.
type Revision string

// RevisionOf returns the revision of a document.
func RevisionOf(source []byte) Revision {
	if len(source) == 0 {
		return ""
	}
	return Revision(DigestOf(source))
}

// Unknown differs from the revision of every document.
const Unknown Revision = "unknown"

// ErrChanged is returned if another writer changed the document first.
var ErrChanged = errors.New("the document has changed meanwhile; read it again")
