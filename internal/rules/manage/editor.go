// Package manage contains what the HTTP and gRPC servers share: who may call, how rules and
// overrides are changed, and how the description of a request is read.
//
//	editor := manage.NewEditor(repository, apply)
//	written, err := editor.Put(ctx, manage.Terms{Author: "alice"}, &r)
//
// An [Editor] changes the document of rules so that no concurrent change is lost. A
// [Guard] checks tokens, and limits clients that try too many. A [Question] is a
// client's description of a request. Servers of one process share one Editor and one
// Guard.
//
// Each error has its own type or value, so that each protocol can describe it in its own
// words.
package manage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/order"
	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/ruleedit"
	"github.com/weirhq/weir/rule"
)

// Editor changes the document of rules. It is safe for concurrent use.
//
// It writes one version at a time, and puts each into force before it writes the next,
// so that a check after a change uses the changed rules.
type Editor struct {
	rules repo.Repository
	apply func(repo.Version) error

	writing order.Lock   // this process edits or compiles only one document at a time
	drafts  *budget.Room // bytes of drafts that are being formatted

	inForce atomic.Pointer[repo.Version]
}

// NewEditor returns an editor of the document in a repository. Apply puts a version that
// was just written into force; it is called in the order of the versions. If it is nil,
// versions come into force only through the repository's Watch, a moment later.
func NewEditor(rules repo.Repository, apply func(repo.Version) error) *Editor {
	if apply == nil {
		apply = func(repo.Version) error { return nil }
	}
	return &Editor{rules: rules, apply: apply, drafts: budget.New(maxDrafts)}
}

// Terms are the conditions and the description of a change.
type Terms struct {
	// Match reports whether a version is the one that the writer has read; see [Base]. Nil
	// accepts any version: if another writer was faster, the change is made again on the
	// newer version.
	Match func(version int64) bool

	Author  string
	Summary string // default a description of the changes

	whole  bool  // the change is a document, which is also written if only the stored one has errors
	backTo int64 // the version that the document is of, for the summary; 0 if it is a new one
}

// Base returns a Terms.Match that accepts only this version.
func Base(version int64) func(int64) bool {
	return func(current int64) bool { return current == version }
}

// Written is the result of a change.
type Written struct {
	Version      repo.Version // with its source; the current version if nothing has changed
	New          bool         // a rule was added
	CommentsKept bool         // false if the document had to be written without its comments
	Warnings     rule.Problems
}

// edit changes a document, and reports whether all comments were kept.
type edit func(*ruleedit.Document) (next *ruleedit.Document, kept bool, err error)

// maxTries is how often a change without Terms.Match is tried if writers on other instances
// are faster.
const maxTries = 20

// write changes the latest document, and tries again if another writer was faster. About is the id
// of the changed rule, "" for the whole document. Edit may be called again, with a later document.
func (e *Editor) write(ctx context.Context, t Terms, about string, edit edit) (Written, error) {
	unlock, err := e.writing.Take(ctx)
	if err != nil {
		return Written{}, err
	}
	defer unlock()
	for range maxTries {
		w, err := e.try(ctx, t, about, edit)
		conflict, ok := errors.AsType[*repo.ConflictError](err)
		switch {
		case !ok:
			return w, err
		case t.Match != nil:
			return Written{}, &OutdatedError{conflict.Current.Number}
		}
	}
	return Written{}, ErrBusy
}

// try tries a change once.
func (e *Editor) try(ctx context.Context, t Terms, about string, edit edit) (Written, error) {
	version, err := e.rules.Current(ctx)
	if err != nil {
		return Written{}, err
	}
	if t.Match != nil && !t.Match(version.Number) {
		return Written{}, &OutdatedError{version.Number}
	}
	next, kept, err := edit(version.Document)
	if err != nil {
		return Written{}, unnamedError(err)
	}
	added := about != "" && version.Document.Find(about) == nil
	if !bytes.Equal(next.Source, version.Source) || t.whole && version.Trouble != nil && !errors.Is(version.Trouble, repo.ErrNotRecorded) {
		if t.Summary == "" && t.backTo > 0 {
			t.Summary = fmt.Sprintf("rolled back to %d: %s", t.backTo, repo.Summarize(version.Document, next))
		}
		version, err = e.rules.Write(ctx, repo.Draft{Base: version.Number, Author: t.Author, Summary: t.Summary, Source: next.Source})
		if err != nil {
			return Written{}, err
		}
	}
	if err := e.apply(version); err != nil {
		return Written{}, &UnappliedError{version.Number, err}
	}
	return Written{Version: version, New: added, CommentsKept: kept, Warnings: warnings(version, about)}, nil
}

// warnings returns the warnings about one rule or, without an id, about the whole document, and tells first of a document that was
// replaced.
func warnings(v repo.Version, about string) rule.Problems {
	some := slices.DeleteFunc(unnamed(v.Document.Warnings), func(p rule.Problem) bool { return about != "" && p.Rule != about })
	if v.Replaced == nil {
		return some
	}
	message := fmt.Sprintf("the stored rules had errors, and version %d replaced them; ", v.Number)
	if v.Replaced.Copy == "" {
		message += "no copy was kept"
	} else {
		message += "a copy is in " + v.Replaced.Copy + " until this happens again; add to the rules what is missing"
	}
	return append(rule.Problems{{Severity: rule.Warning, Code: "W021", Message: message}}, some...)
}

// unnamed are problems without the name of the stored document, which is not the caller's.
func unnamed(problems rule.Problems) rule.Problems {
	problems = slices.Clone(problems)
	for i := range problems {
		problems[i].File = ""
	}
	return problems
}

// unnamedError is an error in which problems are unnamed.
func unnamedError(err error) error {
	if invalid, ok := errors.AsType[*rule.InvalidError](err); ok {
		return &rule.InvalidError{Problems: unnamed(invalid.Problems)}
	}
	return err
}
