package manage

import (
	"github.com/weirhq/weir/internal/override"
	"github.com/weirhq/weir/rule"
)

// OverrideFilter selects overrides; what is left out selects all.
type OverrideFilter struct {
	Rule, Key string
	Past      bool // instead of those that are active
	All       bool // both
}

// ListedOverride is an override and what there is to say of it now.
type ListedOverride struct {
	override.Override
	State override.State

	// NoEffect is why an active override has none under the rules in force, as a sentence; ""
	// if it has.
	NoEffect string
}

// List returns the overrides that this instance knows, the newest first.
func (o *Overrides) List(f OverrideFilter) []ListedOverride {
	found := []ListedOverride{}
	for _, one := range *o.list.Load() {
		if f.Rule != "" && f.Rule != one.Rule || f.Key != "" && !o.names(f.Key, &one) {
			continue
		}
		listed := o.Describe(one)
		if f.All || f.Past != (listed.State == override.Active) {
			found = append(found, listed)
		}
	}
	return found
}

// Describe returns an override as List does.
func (o *Overrides) Describe(one override.Override) ListedOverride {
	listed := ListedOverride{Override: one, State: one.State(o.options.Clock())}
	if listed.State == override.Active {
		listed.NoEffect = o.noEffect(&one)
	}
	return listed
}

func (o *Overrides) noEffect(one *override.Override) string {
	e, err := forEngine(one)
	if err == nil {
		_, err = o.options.Engine.ValidateOverride(e)
	}
	if err != nil {
		return Sentence(err)
	}
	if c := o.rule(one); c != nil && c.Mode == rule.Off {
		return "The rule is off."
	}
	return ""
}

// rule is the one that an override is about, or nil.
func (o *Overrides) rule(one *override.Override) *rule.Entry {
	table, _ := o.options.Engine.Rules()
	return table.Find(one.Rule)
}

// names is whether a key, as people write it, is the client of an override.
func (o *Overrides) names(key string, one *override.Override) bool {
	if key == one.Key {
		return true
	}
	c := o.rule(one)
	if c == nil {
		return false
	}
	identity, err := c.ParseIdentity(key)
	return err == nil && identity == one.Key
}
