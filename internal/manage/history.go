package manage

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/weirhq/weir/internal/repo"
	"github.com/weirhq/weir/rule"
)

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
	if err := e.begin(ctx); err != nil {
		return nil, err
	}
	defer e.finish()
	set, problems := rule.Parse("", source)
	if problems.Err() != nil {
		return nil, nil
	}
	if i := slices.IndexFunc(set.Rules, func(r rule.Rule) bool { return r.ID == id }); i >= 0 {
		return rule.RuleToJSON(&set.Rules[i]), nil
	}
	return nil, nil
}
