package manage

import (
	"context"
	"errors"
	"slices"

	"github.com/weirhq/weir/internal/ruleedit"
	"github.com/weirhq/weir/rule"
)

// Draft is a rule that is being written. It may still be invalid.
type Draft struct {
	Source   []byte // YAML
	Rule     []byte // the same as JSON; nil while the source cannot be read
	Problems rule.Problems
}

// maxDrafts is how many bytes of drafts are formatted at the same time. A byte can become
// half a kilobyte.
const maxDrafts = 256 << 10

// Format reads a draft. If now is not nil, it is a rule in JSON: Format changes the draft to
// this rule and keeps the comments. A source that is neither YAML nor JSON does not change.
// The error is ruleedit.ErrNoObject, or the reason why the other rules cannot be read.
func (e *Editor) Format(ctx context.Context, source, now []byte) (Draft, error) {
	size := int64(len(source) + len(now))
	if err := e.drafts.Take(ctx, size); err != nil {
		return Draft{}, err
	}
	defer e.drafts.Give(size)
	var read ruleedit.Draft
	var err error
	if now != nil {
		read, err = ruleedit.AmendDraft(source, now)
	} else {
		read, err = ruleedit.ReadDraft(source)
	}
	d := Draft{Source: read.Source, Rule: read.Rule}
	switch {
	case errors.Is(err, ruleedit.ErrUnreadable):
		d.Source = source
	case err != nil:
		return d, err
	}
	d.Problems, err = e.Try(ctx, d.Source)
	return d, err
}

// Try returns the problems of a rule, by itself and together with the other rules, and
// writes nothing. If the latest version cannot be read, Try uses the rules in force.
func (e *Editor) Try(ctx context.Context, source []byte) (rule.Problems, error) {
	r, problems := rule.ParseRule("", source)
	if problems.Err() != nil {
		return problems, nil
	}
	v, err := e.Current(ctx)
	if err != nil {
		var ok bool
		if v, ok = e.InForce(); !ok {
			return nil, err
		}
	}
	if err := e.begin(ctx); err != nil {
		return nil, err
	}
	defer e.finish()
	_, _, err = v.Document.Put(r)
	if invalid, ok := errors.AsType[*rule.InvalidError](err); ok {
		problems = append(problems, unnamed(invalid.Problems)...)
	}
	return problems, nil
}

// Trial compiles the rules in force with a draft, and returns the id of the draft. The draft
// replaces the rule with this id; if there is none, it is added at the end. The error is a
// *rule.InvalidError, or the reason why there are no rules.
func (e *Editor) Trial(ctx context.Context, source []byte, o rule.Options) (table *rule.Table, id string, err error) {
	r, err := ParseRule(source)
	if err != nil {
		return nil, "", err
	}
	v, ok := e.InForce()
	if !ok {
		if v, err = e.Current(ctx); err != nil {
			return nil, "", err
		}
	}
	if err := e.begin(ctx); err != nil {
		return nil, "", err
	}
	defer e.finish()
	with := *v.Document.Set
	with.Rules = slices.Clone(with.Rules)
	if i := slices.IndexFunc(with.Rules, func(other rule.Rule) bool { return other.ID == r.ID }); i >= 0 {
		with.Rules[i] = *r
	} else {
		with.Rules = append(with.Rules, *r)
	}
	table, err = rule.Compile(&with, o)
	return table, r.ID, err
}
