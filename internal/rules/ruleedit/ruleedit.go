// Package ruleedit reads documents of rules, each once, and changes them so that what people
// wrote is kept: comments, the order of rules, quotes. A [Reader] makes a [Document], of which
// Put and Delete change one rule and List changes exempt and block; [Tidy] formats a document.
package ruleedit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"reflect"
	"slices"
	"sync"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// ErrNoRule is a rule that is not in the document.
var ErrNoRule = errors.New("rule: the document has no rule with this id; look at its list of rules")

// Put puts a rule into a document, in the place of the one with its id or else after
// the last. The rest stays as people wrote it, and so do the fields that are the same.
// kept is whether no comment was lost on the way; where the document has a form that
// cannot be edited line by line, it is written again as [rule.Format] does, without any.
//
// A document that would not be valid is not made; the error is an *rule.InvalidError, of
// the rule or of the two together.
func (d *Document) Put(r *rule.Rule) (next *Document, kept bool, err error) {
	// As Parse would have it, to be compared with what is parsed afterwards.
	r, problems := rule.ParseRule("", rule.RuleToJSON(r))
	if err := problems.Err(); err != nil {
		return nil, false, err
	}
	i := d.ruleIndex(r.ID)
	switch {
	case i < 0:
		return d.edit(d.With(r), func(f form) (change, bool) { return f.add(r) })
	case reflect.DeepEqual(d.Set.Rules[i], *r):
		return d, true, nil
	}
	return d.edit(d.With(r),
		func(f form) (change, bool) { return f.amend(i, &d.Set.Rules[i], r) },
		func(f form) (change, bool) { return f.replace(i, r) })
}

// With returns the rules of the document with one more, or with one in the place of that with its
// id. It checks nothing.
func (d *Document) With(r *rule.Rule) *rule.Set {
	with := *d.Set
	with.Rules = slices.Clone(with.Rules)
	if i := d.ruleIndex(r.ID); i >= 0 {
		with.Rules[i] = *r
	} else {
		with.Rules = append(with.Rules, *r)
	}
	return &with
}

// Delete removes a rule from a document, together with the comments in it and those
// directly above it. Everything else is as with Put. It is ErrNoRule if there is
// no such rule.
func (d *Document) Delete(id string) (next *Document, kept bool, err error) {
	i := d.ruleIndex(id)
	if i < 0 {
		return nil, false, ErrNoRule
	}
	want := *d.Set
	want.Rules = slices.Delete(slices.Clone(d.Set.Rules), i, i+1)
	if len(want.Rules) == 0 {
		want.Rules = nil
	}
	return d.edit(&want, func(f form) (change, bool) { return f.remove(i) })
}

// Find returns the rule with an id, or nil.
func (d *Document) Find(id string) *rule.Rule {
	if i := d.ruleIndex(id); i >= 0 {
		return &d.Set.Rules[i]
	}
	return nil
}

func (d *Document) ruleIndex(id string) int {
	return slices.IndexFunc(d.Set.Rules, func(r rule.Rule) bool { return r.ID == id })
}

// form is a document that can be changed in places. Each method reports whether it
// knows how; whether it was right is seen when the result is parsed.
type form interface {
	add(r *rule.Rule) (change, bool)
	amend(i int, old, now *rule.Rule) (change, bool) // the fields that differ
	replace(i int, r *rule.Rule) (change, bool)
	remove(i int) (change, bool)
	list(l *Listing) (change, bool)                            // one entry of exempt or block
	field(name string, value *document.Element) (change, bool) // of the document; it goes if it has no value
	whole(set *rule.Set) change                                // all of it
}

// change is what a form has become.
type change struct {
	text []byte
	kept bool // all comments
}

// edit returns the first change that makes just the set that is wanted.
func (d *Document) edit(want *rule.Set, ways ...func(form) (change, bool)) (*Document, bool, error) {
	f := formOf(d.Source)
	for _, way := range ways {
		c, ok := way(f)
		if !ok {
			continue
		}
		if next, err := d.reader.Read(c.text); err == nil && reflect.DeepEqual(next.Set, want) {
			return next, c.kept, nil
		}
	}
	c := f.whole(want)
	next, err := d.reader.Read(c.text)
	return next, c.kept, err
}

// mark is with what some editors begin a file.
const mark = "\xef\xbb\xbf"

func formOf(source []byte) form {
	if text := bytes.TrimPrefix(source, []byte(mark)); isJSON(text) {
		return newJSONForm(text)
	}
	return newYAMLForm(source)
}

// Document is a document of rules: its source, what that says, and what is compiled of it. It is
// made once, by a [Reader] or by an edit of another one, and then passed on. It does not change.
type Document struct {
	Source   []byte
	Set      *rule.Set
	Warnings rule.Problems

	// Table returns the rules as the reader's options say. They are compiled once, when
	// somebody asks.
	Table func() (*rule.Table, error)

	reader *Reader
}

// Reader reads documents. It remembers the last few, so that who is told again and again what is
// stored need not read it again. It is safe for concurrent use.
type Reader struct {
	Name    string // of the documents, as in [rule.Parse]
	Options rule.Options

	mu     sync.Mutex
	recent []*Document // the last that was asked for first
	bad    map[[sha256.Size]byte]error
}

const (
	maxRecent = 4   // the one in force, and what an edit tries
	maxBad    = 100 // as many as a history has
)

// Read reads a document. The error is a *rule.InvalidError.
func (r *Reader) Read(source []byte) (*Document, error) {
	if d := r.remembered(source); d != nil {
		return d, nil
	}
	set, problems := rule.Parse(r.Name, source)
	if problems.Err() == nil {
		problems = append(problems, r.Options.Prices.Problems(set)...)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	d := &Document{Source: source, Set: set, Warnings: problems.Warnings(), reader: r}
	d.Table = sync.OnceValues(func() (*rule.Table, error) { return rule.Compile(set, r.Options) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent = slices.Insert(r.recent, 0, d)
	r.recent = r.recent[:min(len(r.recent), maxRecent)]
	return d, nil
}

func (r *Reader) remembered(source []byte) *Document {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.recent, func(d *Document) bool { return bytes.Equal(d.Source, source) })
	if i < 0 {
		return nil
	}
	d := r.recent[i]
	r.recent = slices.Insert(slices.Delete(r.recent, i, i+1), 0, d)
	return d
}

// Usable reads a document that is stored, and compiles it: what was parsed compiles, but this is
// the last gate before all instances. Why one cannot be used is remembered, too.
func (r *Reader) Usable(source []byte) (*Document, error) {
	digest := sha256.Sum256(source)
	r.mu.Lock()
	err := r.bad[digest]
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	d, err := r.Read(source)
	if err == nil {
		if _, err = d.Table(); err == nil {
			return d, nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bad == nil || len(r.bad) >= maxBad {
		r.bad = map[[sha256.Size]byte]error{}
	}
	r.bad[digest] = err
	return nil, err
}
