// Package ruleedit reads documents of rules, each once, and changes them so that what people
// wrote is kept: comments, the order of rules, quotes. A [Reader] makes a [Document], of which
// Put and Delete change one rule and List changes exempt and block; [Tidy] formats a document.
package ruleedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

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
	want := *d.Set
	want.Rules = slices.Clone(d.Set.Rules)
	i := d.find(r.ID)
	if i < 0 {
		want.Rules = append(want.Rules, *r)
		return d.edit(&want, func(f form) (change, bool) { return f.add(r) })
	}
	if reflect.DeepEqual(d.Set.Rules[i], *r) {
		return d, true, nil
	}
	want.Rules[i] = *r
	return d.edit(&want,
		func(f form) (change, bool) { return f.amend(i, &d.Set.Rules[i], r) },
		func(f form) (change, bool) { return f.replace(i, r) })
}

// Delete removes a rule from a document, together with the comments in it and those
// directly above it. Everything else is as with Put. It is ErrNoRule if there is
// no such rule.
func (d *Document) Delete(id string) (next *Document, kept bool, err error) {
	i := d.find(id)
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
	if i := d.find(id); i >= 0 {
		return &d.Set.Rules[i]
	}
	return nil
}

func (d *Document) find(id string) int {
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
	text := bytes.TrimPrefix(source, []byte(mark))
	if content := bytes.TrimLeft(text, " \t\r\n"); len(content) > 0 && content[0] == '{' && json.Valid(text) {
		return newJSONForm(text)
	}
	return newYAMLForm(source)
}
