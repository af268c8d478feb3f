package manage

import (
	"bytes"
	"context"
	"fmt"

	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/internal/ruleedit"
	"github.com/weirhq/weir/rule"
)

// Current returns the latest version of the rules, and its set. Do not change the set.
func (e *Editor) Current(ctx context.Context) (repo.Version, *rule.Set, error) {
	v, err := e.rules.Current(ctx)
	if err != nil {
		return v, nil, err
	}
	set, err := e.parsed.setOf(v)
	return v, set, err
}

// Installed records that this process applies a version from now on.
func (e *Editor) Installed(v repo.Version) { e.inForce.Store(&v) }

// InForce returns the version that this process applies, if Installed has been called.
func (e *Editor) InForce() (v repo.Version, set *rule.Set, ok bool) {
	known := e.inForce.Load()
	if known == nil {
		return repo.Version{}, nil, false
	}
	set, err := e.parsed.setOf(*known)
	return *known, set, err == nil
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
	return e.write(ctx, change{terms: t, about: r.ID, edit: func(v repo.Version) (edited, error) {
		if set, err := e.parsed.setOf(v); err == nil && Find(set, r.ID) != nil {
			return edited{}, &ExistsError{r.ID}
		}
		return e.put(v, r)
	}})
}

// Put replaces the rule with the same id, or adds the rule.
func (e *Editor) Put(ctx context.Context, t Terms, r *rule.Rule) (Written, error) {
	return e.write(ctx, change{terms: t, about: r.ID, edit: func(v repo.Version) (edited, error) {
		return e.put(v, r)
	}})
}

func (e *Editor) put(v repo.Version, r *rule.Rule) (edited, error) {
	set, err := e.parsed.setOf(v)
	added := err == nil && Find(set, r.ID) == nil
	source, kept, err := ruleedit.Put(v.Source, r)
	return edited{source, kept, added}, err
}

// Delete removes a rule. The error is ruleedit.ErrNoRule if there is none.
func (e *Editor) Delete(ctx context.Context, t Terms, id string) (Written, error) {
	return e.write(ctx, change{terms: t, about: id, edit: func(v repo.Version) (edited, error) {
		source, kept, err := ruleedit.Delete(v.Source, id)
		return edited{source: source, kept: kept}, err
	}})
}

// List adds a client to the exempt list or the block list, or removes it. If the client is
// invalid, the error is a *rule.InvalidError.
func (e *Editor) List(ctx context.Context, t Terms, l ruleedit.Listing) (Written, error) {
	if t.Summary == "" {
		t.Summary = fmt.Sprintf("%s: added %s %s", l.List, l.Kind, l.Client)
		if l.Off {
			t.Summary = fmt.Sprintf("%s: removed %s %s", l.List, l.Kind, l.Client)
		}
		t.Summary = t.Summary[:min(len(t.Summary), rule.MaxSummary)]
	}
	return e.write(ctx, change{terms: t, edit: func(v repo.Version) (edited, error) {
		source, kept, err := ruleedit.List(v.Source, l)
		return edited{source: source, kept: kept}, err
	}})
}

// Replace replaces the whole document.
func (e *Editor) Replace(ctx context.Context, t Terms, source []byte) (Written, error) {
	return e.write(ctx, change{terms: t, edit: func(repo.Version) (edited, error) {
		return edited{source: source, kept: true}, nil
	}})
}

// RollBack writes the document of an older version as a new version. The versions in
// between stay in the history.
func (e *Editor) RollBack(ctx context.Context, t Terms, to repo.Version) (Written, error) {
	if t.Summary == "" {
		t.Summary = fmt.Sprintf("rolled back to %d", to.Number)
	}
	return e.Replace(ctx, t, to.Source)
}

// ParseRule reads one rule. The error is a *rule.InvalidError.
func ParseRule(source []byte) (*rule.Rule, error) {
	r, problems := rule.ParseRule("", source)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return r, nil
}

// CheckDocument reports whether a document can be written. The error is a
// *rule.InvalidError or ErrEmpty. An empty document is valid when it is read, but a caller
// that sends one has probably made a mistake.
func CheckDocument(source []byte) error {
	set, problems := rule.Parse("", source)
	if err := problems.Err(); err != nil {
		return err
	}
	if len(set.Rules) == 0 && !bytes.Contains(source, []byte("rules")) {
		return ErrEmpty
	}
	return nil
}

// Find returns the rule with an id, or nil.
func Find(set *rule.Set, id string) *rule.Rule {
	for i := range set.Rules {
		if set.Rules[i].ID == id {
			return &set.Rules[i]
		}
	}
	return nil
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
