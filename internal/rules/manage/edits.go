package manage

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/weirhq/weir/internal/rules/repo"
	"github.com/weirhq/weir/internal/rules/ruleedit"
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
	return e.write(ctx, t, r.ID, func(d *ruleedit.Document) (*ruleedit.Document, bool, error) {
		if d.Find(r.ID) != nil {
			return nil, false, &ExistsError{r.ID}
		}
		return d.Put(r)
	})
}

// Put replaces the rule with the same id, or adds the rule.
func (e *Editor) Put(ctx context.Context, t Terms, r *rule.Rule) (Written, error) {
	return e.write(ctx, t, r.ID, func(d *ruleedit.Document) (*ruleedit.Document, bool, error) { return d.Put(r) })
}

// Delete removes a rule. The error is ruleedit.ErrNoRule if there is none.
func (e *Editor) Delete(ctx context.Context, t Terms, id string) (Written, error) {
	return e.write(ctx, t, id, func(d *ruleedit.Document) (*ruleedit.Document, bool, error) { return d.Delete(id) })
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
	return e.write(ctx, t, "", func(d *ruleedit.Document) (*ruleedit.Document, bool, error) { return d.List(l) })
}

// Replace replaces the whole document, also if it is in force already but the stored one has errors.
func (e *Editor) Replace(ctx context.Context, t Terms, d *ruleedit.Document) (Written, error) {
	t.whole = true
	return e.write(ctx, t, "", func(*ruleedit.Document) (*ruleedit.Document, bool, error) { return d, true, nil })
}

// RollBack writes the document of an older version as a new version. The versions in
// between stay in the history.
func (e *Editor) RollBack(ctx context.Context, t Terms, to repo.Version) (Written, error) {
	t.backTo = to.Number
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

// Draft is a rule that is being written. It may still be invalid.
type Draft struct {
	ruleedit.Draft // without Rule while the source cannot be read
	Problems       rule.Problems
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
	var d Draft
	var err error
	if now != nil {
		d.Draft, err = ruleedit.AmendDraft(source, now)
	} else {
		d.Draft, err = ruleedit.ReadDraft(source)
	}
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
	unlock, err := e.writing.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
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
	unlock, err := e.writing.Take(ctx)
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	table, err = rule.Compile(v.Document.With(r), o)
	return table, r.ID, err
}

// maxCompared is how many bytes of documents one call reads to find out when a rule changed.
const maxCompared = 8 << 20

// RuleHistory returns the versions in which a rule changed, came or went, the latest first.
// All is false if older ones were not looked at, since that would take too long.
func (e *Editor) RuleHistory(ctx context.Context, id string) (changed []repo.Version, all bool, err error) {
	versions, err := e.rules.History(ctx)
	if err != nil {
		return nil, false, err
	}
	var after []byte // the rule in the version that comes next
	read := 0
	for i, v := range versions {
		if read > maxCompared {
			return changed, false, nil
		}
		found, err := e.rules.Find(ctx, v.Number)
		if errors.Is(err, repo.ErrNoVersion) {
			return changed, true, nil // meanwhile it was too old to be kept
		}
		if err != nil {
			return nil, false, err
		}
		read += len(found.Source)
		now, err := e.ruleIn(ctx, found.Source, id)
		if err != nil {
			return nil, false, err
		}
		if i > 0 && !bytes.Equal(now, after) {
			changed = append(changed, versions[i-1])
		}
		after = now
	}
	if n := len(versions); n > 0 && after != nil {
		changed = append(changed, versions[n-1])
	}
	return changed, true, nil
}

// ruleIn is a rule of a document as JSON; nil if the document has none with this id, or
// cannot be read.
func (e *Editor) ruleIn(ctx context.Context, source []byte, id string) ([]byte, error) {
	unlock, err := e.writing.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// By a reader of its own: that of the repository should remember what is in use.
	if d, err := new(ruleedit.Reader).Read(source); err == nil {
		if r := d.Find(id); r != nil {
			return rule.RuleToJSON(r), nil
		}
	}
	return nil, nil
}
