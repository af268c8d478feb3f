// Package bearer knows who holds a bearer token, and what it is good for. Tokens are
// kept as hashes only, so that nothing that prints a list prints a secret.
package bearer

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
)

// Scope is what a token is good for.
type Scope uint8

const (
	Read  Scope = iota // to look at everything
	Use                // and to count and queue, which is for applications
	Admin              // and to change everything
)

var scopes = []string{Read: "read", Use: "use", Admin: "admin"}

// String returns the word that stands for the scope in a file.
func (s Scope) String() string {
	if int(s) < len(scopes) {
		return scopes[s]
	}
	return fmt.Sprintf("scope %d", uint8(s))
}

// Holder is whom a token was given to.
type Holder struct {
	Name  string
	Scope Scope
}

// List is an immutable list of tokens. A nil list contains no token.
type List struct{ entries []entry }

type entry struct {
	holder Holder
	sum    [sha256.Size]byte
}

// Find returns the holder of a token. It compares hashes with every token of the list,
// so that its time does not depend on which token matches, or how much of it: a client
// cannot choose the beginning of a hash.
func (l *List) Find(bearer string) (Holder, bool) {
	if i, ok := l.find(bearer); ok {
		return l.entries[i].holder, true
	}
	return Holder{}, false
}

func (l *List) find(bearer string) (int, bool) {
	if l == nil || len(bearer) < minToken || len(bearer) > maxToken {
		return 0, false
	}
	sum := sha256.Sum256([]byte(bearer))
	found := -1
	for i := range l.entries {
		same := subtle.ConstantTimeCompare(sum[:], l.entries[i].sum[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	return found, found >= 0
}

// Equal reports whether two lists have the same holders with the same tokens, so that
// code that polls a file can tell when it has changed.
func (l *List) Equal(other *List) bool {
	if l == nil || other == nil {
		return l == other
	}
	return slices.Equal(l.entries, other.entries)
}
