// Package repo keeps the document of rules and its history: what that means, and what every
// place has in common. The packages below are the places.
package repo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/rule"
)

// Version is the document of rules at one time. A change names the version that it is
// based on, and fails with a [ConflictError] if that is no longer the latest.
type Version struct {
	Number  int64     `json:"number"`  // from 1; 0 is a document that was never written
	Time    time.Time `json:"time"`    // when it was written
	Author  string    `json:"author"`  // by whom, as far as that is known
	Summary string    `json:"summary"` // what changed, in a line
	Source  []byte    `json:"-"`       // the document, as it was written, not to be changed; nil in a history

	// Document is what was read of the source: of what Current, Write and Watch tell, nil for
	// older versions.
	Document *ruleedit.Document `json:"-"`

	// Trouble, of what Current returns, is why a later document is not used, or why the version
	// is not recorded; nil if there is none of that.
	Trouble error `json:"-"`

	// Replaced, of what Write returns, tells of a stored document that could not be used, and that
	// the version took the place of; nil if there was none.
	Replaced *Replaced `json:"-"`
}

// Replaced is a document that could not be used when a version took its place. Perhaps somebody
// was editing it.
type Replaced struct {
	Copy string // where it is kept; "" if it is not
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
	// Read reads a document with the options of the repository, and remembers it, so that
	// Write need not read it again. The error is a *rule.InvalidError.
	Read(source []byte) (*ruleedit.Document, error)

	// Current returns the latest version that can be used.
	Current(ctx context.Context) (Version, error)

	// Write makes the draft the latest version, and returns it. The error is a
	// *ConflictError if its base is not what Current returns, a *rule.InvalidError
	// if it cannot be used, or a *ReadOnlyError. After any other error it may have been written;
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
var ErrNoVersion = errors.New("rules: the version does not exist, or is no longer kept")

// ErrNotRecorded is a version that is in force, but not in the history.
var ErrNotRecorded = errors.New("not recorded")

// ConflictError is a draft that was based on what is not the latest version any more.
type ConflictError struct {
	Base    int64
	Current Version // with its source
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("rules: version %d is not the latest any more, %d is; read it, and make your change again", e.Base, e.Current.Number)
}

// ReadOnlyError is that the document cannot be written here, neither now nor later.
type ReadOnlyError struct {
	Why string // for those who want to change it: without paths
	Err error
}

func (e *ReadOnlyError) Error() string { return e.Err.Error() }
func (e *ReadOnlyError) Unwrap() error { return e.Err }

// Bounds on what a repository keeps.
const (
	MaxHistory = 100 // versions
	MaxAuthor  = 200 // bytes
)

// Ready returns the draft as the version that a repository keeps, if it can be used: the author
// and the summary are one line each, and not too long, and a summary that is missing
// tells what is different from the current document, which may be nil. Number and time are left
// to the repository.
func (d Draft) Ready(r *ruleedit.Reader, current *ruleedit.Document) (Version, error) {
	document, err := r.Usable(d.Source)
	if err != nil {
		return Version{}, err
	}
	v := Version{Author: OneLine(d.Author, MaxAuthor), Summary: OneLine(d.Summary, rule.MaxSummary), Source: d.Source, Document: document}
	if v.Summary == "" {
		v.Summary = Summarize(current, document)
	}
	return v, nil
}

// Summarize tells in a line what has changed. The old document is nil if there was none that
// could be used.
func Summarize(old, now *ruleedit.Document) string {
	var set *rule.Set
	if old != nil {
		set = old.Set
	}
	return rule.Summarize(set, now.Set)
}

// History returns what is recorded, the latest first, with the current version in front if that is
// not among it.
func History(current Version, recorded []Version) []Version {
	if current.Number > 0 && (len(recorded) == 0 || recorded[0].Number < current.Number) {
		current.Source, current.Document, current.Trouble = nil, nil, nil
		recorded = slices.Insert(recorded, 0, current)
	}
	return recorded[:min(len(recorded), MaxHistory)]
}

// OneLine turns a text into one line of at most that many bytes, for logs and lists. It has
// no marks that make a part of it appear in another order.
func OneLine(text string, most int) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return document.Clip(strings.TrimSpace(text), most)
}

// Notifier calls Changed as [Repository.Watch] promises, for implementations of a
// repository: once for each version and once for each error.
type Notifier struct {
	Changed func(Version, error)

	told    bool // a version
	version Version
	trouble string // that was told last, and is not over
}

// Tell is called with what is in force, as often as it is looked at, and with what
// keeps a later document from being so. As long as nothing can be read, the version
// is nil.
func (n *Notifier) Tell(v *Version, trouble error) {
	if v != nil && (!n.told || !n.version.same(*v)) {
		n.told, n.version = true, *v
		n.trouble = ""
		n.Changed(n.version, nil)
	}
	switch {
	case trouble != nil && trouble.Error() != n.trouble:
		n.trouble = trouble.Error()
		n.Changed(n.version, trouble)
	case trouble == nil && n.trouble != "":
		n.trouble = ""
		n.Changed(n.version, nil)
	}
}

// same is false for two versions of one number, which there are when a Redis has
// forgotten the first of them.
func (v Version) same(other Version) bool {
	return v.Number == other.Number && v.Time.Equal(other.Time) && bytes.Equal(v.Source, other.Source)
}

// DigestLen is the length of a digest.
const DigestLen = 2 * sha256.Size

// DigestOf returns the digest of a document, in hexadecimal, which tells it from others.
func DigestOf(source []byte) string {
	sum := sha256.Sum256(source)
	return hex.EncodeToString(sum[:])
}
