package manage

import (
	"bytes"
	"context"
	"fmt"

	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/internal/ruleedit"
	"github.com/weirhq/weir/rule"
)

// Current returns the latest version of the rules.
func (e *Editor) Current(ctx context.Context) (repo.Version, error) { return e.rules.Current(ctx) }

// Installed records that this process applies a version from now on.
func (e *Editor) Installed(v repo.Version) { e.inForce.Store(&v) }

// InForce returns the version that this process applies, if Installed has been called.
func (e *Editor) InForce() (v repo.Version, ok bool) {
	if known := e.inForce.Load(); known != nil {
		return *known, true
	}
	return v, false
}

// History returns the versions that are kept, the latest first.
func (e *Editor) History(ctx context.Context) ([]repo.Version, error) { return e.rules.History(ctx) }

// Version returns a version with its source, or repo.ErrNoVersion if it is not kept.
func (e *Editor) Version(ctx context.Context, number int64) (repo.Version, error) {
	return e.rules.Find(ctx, number)
}

// Add adds a new rule to the document. If a rule with its id exists, the error is an
// *ExistsError.
func (e *Editor) Add(ctx context.Context, t Terms, r *rule.Rule) (Written, error) {
	return e.write(ctx, change{terms: t, about: r.ID, edit: func(d *ruleedit.Document) (edited, error) {
		if d.Find(r.ID) != nil {
			return edited{}, &ExistsError{r.ID}
		}
		next, kept, err := d.Put(r)
		return edited{next, kept, true}, err
	}})
}

// Put replaces the rule with the same id, or adds the rule.
func (e *Editor) Put(ctx context.Context, t Terms, r *rule.Rule) (Written, error) {
	return e.write(ctx, change{terms: t, about: r.ID, edit: func(d *ruleedit.Document) (edited, error) {
		next, kept, err := d.Put(r)
		return edited{next, kept, d.Find(r.ID) == nil}, err
	}})
}

// Delete removes a rule. The error is ruleedit.ErrNoRule if there is none.
func (e *Editor) Delete(ctx context.Context, t Terms, id string) (Written, error) {
	return e.write(ctx, change{terms: t, about: id, edit: func(d *ruleedit.Document) (edited, error) {
		next, kept, err := d.Delete(id)
		return edited{document: next, kept: kept}, err
	}})
}

// List adds a client to the exempt list or the block list, or removes it. If the client is
// invalid, the error is a *rule.InvalidError.
func (e *Editor) List(ctx context.Context, t Terms, l ruleedit.Listing) (Written, error) {
	if t.Summary == "" {
		done := "added"
		if l.Off {
			done = "removed"
		}
		t.Summary = fmt.Sprintf("%s: %s %s %s", l.List, done, l.Kind, l.Client)
		t.Summary = t.Summary[:min(len(t.Summary), rule.MaxSummary)]
	}
	return e.write(ctx, change{terms: t, edit: func(d *ruleedit.Document) (edited, error) {
		next, kept, err := d.List(l)
		return edited{document: next, kept: kept}, err
	}})
}

// Replace replaces the whole document.
func (e *Editor) Replace(ctx context.Context, t Terms, d *ruleedit.Document) (Written, error) {
	return e.write(ctx, change{terms: t, edit: func(*ruleedit.Document) (edited, error) {
		return edited{document: d, kept: true}, nil
	}})
}

// RollBack writes the document of an older version as a new version. The versions in
// between stay in the history.
func (e *Editor) RollBack(ctx context.Context, t Terms, to repo.Version) (Written, error) {
	if t.Summary == "" {
		t.Summary = fmt.Sprintf("rolled back to %d", to.Number)
	}
	d, err := e.rules.Read(to.Source)
	if err != nil {
		return Written{}, unnamedError(err)
	}
	return e.Replace(ctx, t, d)
}

// Read reads a document that somebody wants to write. The error is a
// *rule.InvalidError or ErrEmpty. An empty document is valid when it is stored, but a caller
// that sends one has probably made a mistake.
func (e *Editor) Read(source []byte) (*ruleedit.Document, error) {
	d, err := e.rules.Read(source)
	if err != nil {
		return nil, unnamedError(err)
	}
	if len(d.Set.Rules) == 0 && !bytes.Contains(source, []byte("rules")) {
		return nil, ErrEmpty
	}
	return d, nil
}

// ParseRule reads one rule. The error is a *rule.InvalidError.
func ParseRule(source []byte) (*rule.Rule, error) {
	r, problems := rule.ParseRule("", source)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return r, nil
}

// RuleToYAML returns one rule as YAML, which rule.ParseRule accepts.
func RuleToYAML(r *rule.Rule) []byte {
	// A document of this rule alone, without its first line, and its list of one.
	_, list, _ := bytes.Cut(rule.Format(&rule.Set{Rules: []rule.Rule{*r}}), []byte("\n"))
	const dash = "  - "
	var text []byte
	for line := range bytes.Lines(list) {
		if len(line) > len(dash) {
			line = line[len(dash):]
		}
		text = append(text, line...)
	}
	same, problems := rule.ParseRule("", text)
	if problems.Err() != nil || !bytes.Equal(rule.RuleToJSON(same), rule.RuleToJSON(r)) {
		return append(rule.RuleToJSON(r), '\n') // JSON is also YAML
	}
	return text
}
