package manage

import (
	"context"
	"errors"
	"slices"

	"github.com/weirhq/weir/internal/ruleedit"
	"github.com/weirhq/weir/rule"
)

// Draft is a rule that somebody is writing, which need not be valid yet.
type Draft struct {
	Source   []byte // YAML
	Rule     []byte // the same as JSON; nil while the source cannot be read
	Problems rule.Problems
}

// Format reads a draft. If it is to become another rule, which is given as JSON, its
// comments are kept. What is neither YAML nor JSON stays as it is. The error is
// ruleedit.ErrNoObject, or why the other rules cannot be read.
func (e *Editor) Format(ctx context.Context, source, now []byte) (Draft, error) {
	read, err := ruleedit.ReadDraft(source)
	if now != nil {
		read, err = ruleedit.AmendDraft(source, now)
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

// Try says what is wrong with a rule, by itself or together with the others, and writes
// nothing. While the latest version cannot be read, the others are those in force.
func (e *Editor) Try(ctx context.Context, source []byte) (rule.Problems, error) {
	r, problems := rule.ParseRule("", source)
	if problems.Err() != nil {
		return problems, nil
	}
	v, _, err := e.Current(ctx)
	if err != nil {
		var ok bool
		if v, _, ok = e.InForce(); !ok {
			return nil, err
		}
	}
	if err := e.begin(ctx); err != nil {
		return nil, err
	}
	defer e.finish()
	_, _, err = ruleedit.Put(v.Source, r)
	if invalid, ok := errors.AsType[*rule.InvalidError](err); ok {
		problems = append(problems, invalid.Problems...)
	}
	return problems, nil
}

// Trial compiles the rules in force with a draft in the place of the rule with its id, or
// else behind the last, and returns that id, too. The error is a *rule.InvalidError, or why
// there are no rules.
func (e *Editor) Trial(ctx context.Context, source []byte, o rule.Options) (table *rule.Table, id string, err error) {
	r, err := ParseRule(source)
	if err != nil {
		return nil, "", err
	}
	_, set, ok := e.InForce()
	if !ok {
		if _, set, err = e.Current(ctx); err != nil {
			return nil, "", err
		}
	}
	if err := e.begin(ctx); err != nil {
		return nil, "", err
	}
	defer e.finish()
	with := *set
	with.Rules = slices.Clone(set.Rules)
	if i := slices.IndexFunc(with.Rules, func(other rule.Rule) bool { return other.ID == r.ID }); i >= 0 {
		with.Rules[i] = *r
	} else {
		with.Rules = append(with.Rules, *r)
	}
	table, err = rule.Compile(&with, o)
	return table, r.ID, err
}
