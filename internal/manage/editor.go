// Package manage is what the servers have in common, whatever protocol they speak: who
// may call, how rules are changed, and how a question is read.
//
//	editor := manage.NewEditor(repository, apply)
//	written, err := editor.Put(ctx, manage.Terms{Author: "alice"}, &r)
//
// An [Editor] changes the document of rules so that no concurrent change is lost. A
// [Guard] checks tokens, and limits clients that try too many. A [Question] is a
// client's description of a request. Servers of one process share one Editor and one
// Guard.
//
// Errors are of types that a protocol has words of its own for.
package manage

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/rule"
)

// Editor changes the document of rules. It is safe for concurrent use.
//
// It writes one version at a time, and puts each into force before it writes the next,
// so that a check after a change uses the changed rules.
type Editor struct {
	rules repo.Repository
	apply func(repo.Version) error

	// writing has room for one: writes of this process do not race each other, and
	// only one document is edited or compiled at a time.
	writing chan struct{}

	parsed  parsed
	inForce atomic.Pointer[repo.Version]
}

// NewEditor returns an editor of the document in a repository. Apply puts a version that
// was just written into force; versions come in order. If it is nil, they come by the
// repository's Watch alone, a moment later.
func NewEditor(rules repo.Repository, apply func(repo.Version) error) *Editor {
	if apply == nil {
		apply = func(repo.Version) error { return nil }
	}
	return &Editor{rules: rules, apply: apply, writing: make(chan struct{}, 1)}
}

// Terms are those on which a change is made.
type Terms struct {
	// Match is whether a version is what the writer has read; see [Base]. Nil is for
	// whatever is there: if somebody else is faster, the change is made again on top.
	Match func(version int64) bool

	Author  string
	Summary string // "" is made up from what has changed
}

// Base is for Terms.Match: the writer has read this version.
func Base(version int64) func(int64) bool {
	return func(current int64) bool { return current == version }
}

// Written is what has become of a change.
type Written struct {
	Version      repo.Version // with its source; as it was, if nothing has changed
	New          bool         // a rule that was not there before
	CommentsKept bool         // false if the document had to be written again, without them
	Warnings     rule.Problems
}

// change makes a new document of the latest one.
type change struct {
	terms Terms
	about string // the rule that is changed, "" if it is the document

	// edit returns the document. It may be called again, with a later version.
	edit func(repo.Version) (edited, error)
}

type edited struct {
	source []byte
	kept   bool // all comments
	added  bool // a rule that was not there
}

// maxTries is how often a change to whatever is there is made again because somebody on
// another instance was faster.
const maxTries = 20

// errFaster is that somebody was, and the change may be made again.
var errFaster = errors.New("manage: somebody was faster")

// write carries a change out.
func (e *Editor) write(ctx context.Context, ch change) (Written, error) {
	if err := e.begin(ctx); err != nil {
		return Written{}, err
	}
	defer e.finish()
	for range maxTries {
		w, err := e.try(ctx, &ch)
		if err != errFaster {
			return w, err
		}
	}
	return Written{}, ErrBusy
}

// begin waits for its turn to change a document.
func (e *Editor) begin(ctx context.Context) error {
	select {
	case e.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Editor) finish() { <-e.writing }

// try makes a change once.
func (e *Editor) try(ctx context.Context, ch *change) (Written, error) {
	current, err := e.rules.Current(ctx)
	if err != nil {
		return Written{}, err
	}
	match := ch.terms.Match
	if match != nil && !match(current.Number) {
		return Written{}, &OutdatedError{current.Number}
	}
	done, err := ch.edit(current)
	if err != nil {
		return Written{}, err
	}
	version := current
	if !bytes.Equal(done.source, current.Source) {
		version, err = e.rules.Write(ctx, repo.Draft{
			Base: current.Number, Author: ch.terms.Author, Summary: ch.terms.Summary, Source: done.source,
		})
	}
	if conflict, ok := errors.AsType[*repo.ConflictError](err); ok {
		if match == nil {
			return Written{}, errFaster
		}
		return Written{}, &OutdatedError{conflict.Current.Number}
	}
	if err != nil {
		return Written{}, err
	}
	if err := e.apply(version); err != nil {
		return Written{}, &UnappliedError{version.Number, err}
	}
	return Written{
		Version: version, New: done.added, CommentsKept: done.kept, Warnings: warnings(version.Source, ch.about),
	}, nil
}

// warnings are those about a rule, or the whole document.
func warnings(source []byte, about string) rule.Problems {
	_, problems := rule.Parse("", source)
	var found rule.Problems
	for _, p := range problems.Warnings() {
		if about == "" || p.Rule == about {
			found = append(found, p)
		}
	}
	return found
}

// parsed is the version of the rules that was asked for last: a document of many rules
// takes long to read, and is read more often than it changes.
type parsed struct {
	mu      sync.Mutex
	version repo.Version
	set     *rule.Set
}

// setOf parses the document of a version.
func (p *parsed) setOf(v repo.Version) (*rule.Set, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.set != nil && p.version.Number == v.Number && bytes.Equal(p.version.Source, v.Source) {
		return p.set, nil
	}
	set, problems := rule.Parse("", v.Source)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	p.version, p.set = v, set
	return set, nil
}
