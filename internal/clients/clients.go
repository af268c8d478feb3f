// Package clients keeps the directory of clients as data that changes at run time: to whom an API key belongs, which tier
// and what limits of its own a client has. Every instance has the whole directory in memory; a store has the truth, and tells
// of changes. The package knows no protocol.
package clients

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// Bounds on calls.
const (
	MaxChanges = 1000 // of one Apply, and as many with Prune
	MaxPage    = 1000 // entries of one List
	UsualPage  = 100  // entries, if a call does not say how many
	MaxAuthor  = 200  // bytes of who makes a change

	maxPageBytes = 2 << 20 // of a page as an API shows it; many libraries for gRPC accept answers up to 4 MiB
)

// Entry is a client as it is stored.
type Entry struct {
	rule.Client
	Version string    // changes with each change of the entry, as an ETag does
	By      string    // who made the last change
	At      time.Time // when
}

// MarshalJSON returns the entry as a line of a file of clients has it.
func (e Entry) MarshalJSON() ([]byte, error) { return json.Marshal(e.Client) }

// Change is a change of one client. The zero If makes it in any case.
type Change struct {
	Client rule.Client // the whole new entry
	Delete bool        // the client, of which only the name counts
	If     string      // Exists, Missing, or the version that the entry must have

	// Prune deletes the client only if all changes without Prune succeed.
	Prune bool
}

// What Change.If can be besides a version.
const (
	Exists  = "*" // the client must be there
	Missing = "-" // and it must not
)

// Outcome is what became of a change.
type Outcome struct {
	Entry     Entry // as it is now; as it was if it was deleted, or was not changed
	Created   bool  // it was not there before
	Unchanged bool  // it was there like that, so it keeps its version
	Err       error // an *Error; then nothing changed
}

// Query selects clients. An empty field selects all.
type Query struct {
	Parent   string // directly
	Tier     string // of its own
	Kind     string // what the name begins with, such as "user" or "attr:customer"
	Contains string // a part of the name
	After    string // the last name of the page before
	Limit    int    // at most MaxPage; 0 is MaxPage
}

// Reason tells errors apart.
type Reason uint8

const (
	Invalid     Reason = iota // a field of the entry is wrong
	NotFound                  // there is no such client
	Mismatch                  // it does not have the version that Change.If demands
	NoParent                  // the parent is not in the directory
	Cycle                     // the client would belong to itself, or to two of one kind
	TooDeep                   // there would be more than rule.MaxLine clients in a line
	HasMembers                // other clients belong to it
	Full                      // the directory has rule.MaxClients
	Unavailable               // the store cannot be reached
	ReadOnly                  // the directory comes from a file
	Busy                      // other processes keep changing the directory
)

// Error is why a change was not made. Its message has a remedy.
type Error struct {
	Reason  Reason
	Field   string // of an entry that is invalid
	Message string
	Err     error // of the store
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.Err)
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// ErrNotFound is why a client that is not there was not changed.
var ErrNotFound = &Error{Reason: NotFound, Message: "there is no such client; add it first, or correct the name"}

// ErrChanged is why a client was not changed whose version is another one.
var ErrChanged = &Error{Reason: Mismatch, Message: "the client has changed since you read it; read it, make your change again, and send its new ETag"}

// Status is how current the directory is.
type Status struct {
	Clients  int
	ReadOnly bool      // it comes from a file
	Loaded   bool      // it was read at least once; otherwise nothing is known of any client
	Since    time.Time // when it was last current, if it is not; the zero time if it is
	Err      error     // why it is not current
	Unusable error     // why a client that is in the store is unknown, and those below it; nil if all are known
}

// IsDocument reports whether clients are a document in YAML or JSON with the list "clients", by how they begin. Otherwise
// they are NDJSON, with one client in each line.
func IsDocument(start []byte) bool {
	start = bytes.TrimLeft(start, " \t\r\n")
	rest, brace := bytes.CutPrefix(start, []byte("{"))
	return len(start) > 0 && (!brace || bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n\""), []byte("clients")))
}

// EachInDocument yields the clients of a document as JSON. The error has the place, and comes after some may have been yielded.
func EachInDocument(name string, source []byte, yield func(line int, source []byte)) (wrong error) {
	root := document.ReadEach(name, string(source), func(f document.Fault) {
		wrong = cmp.Or(wrong, fmt.Errorf("%s:%d:%d: %s", name, f.Line, f.Column, f.Message))
	}, "clients", func(e *document.Element) { yield(e.Line, e.JSON()) })
	if wrong == nil && root != nil && root.Kind != document.Nothing && !isList(root) {
		wrong = fmt.Errorf("%s: write only the list of clients, as in clients: [{client: \"user:ann\"}]", name)
	}
	return wrong
}

func isList(root *document.Element) bool {
	list := root.Get("clients")
	return len(root.Members) == 1 && list != nil && (list.Kind == document.List || list.Kind == document.Nothing)
}
