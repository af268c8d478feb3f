package manage

import (
	"errors"
	"fmt"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// OverrideFilter selects overrides. An empty field selects all.
type OverrideFilter struct {
	Rule, Key string
	Past      bool // past overrides instead of active ones
	All       bool // past and active overrides
}

// ListedOverride is an override with its current state.
type ListedOverride struct {
	Override
	State OverrideState

	NoEffect
}

// NoEffect says why an active override has no effect under the rules in force.
type NoEffect struct {
	Code   string // no_rule, rule_off, other_key or bad_limit; "" if it has an effect
	Detail string // a sentence
}

// List returns the overrides that this instance knows, the newest first.
func (o *Overrides) List(f OverrideFilter) []ListedOverride {
	found := []ListedOverride{}
	for _, one := range *o.list.Load() {
		if f.Rule != "" && f.Rule != one.Rule || f.Key != "" && !o.names(f.Key, &one) {
			continue
		}
		listed := o.Describe(one)
		if f.All || f.Past != (listed.State == OverrideActive) {
			found = append(found, listed)
		}
	}
	return found
}

// Describe returns one override in the form of List.
func (o *Overrides) Describe(one Override) ListedOverride {
	listed := ListedOverride{Override: one, State: one.State(o.options.Clock())}
	if listed.State == OverrideActive {
		listed.NoEffect = o.noEffect(&one)
	}
	return listed
}

func (o *Overrides) noEffect(one *Override) NoEffect {
	e, err := forEngine(one)
	if err == nil {
		_, err = o.options.Engine.ValidateOverride(e)
	}
	c := o.rule(one)
	switch {
	case c == nil:
		return NoEffect{"no_rule", fmt.Sprintf("There is no rule %q.", one.Rule)}
	case c.Mode == rule.Off:
		return NoEffect{"rule_off", "The rule is off."}
	case errors.As(err, new(*engine.KeyError)):
		return NoEffect{"other_key", Sentence(err)}
	case err != nil:
		return NoEffect{"bad_limit", Sentence(err)}
	}
	return NoEffect{}
}

// rule returns the rule of an override, or nil if it does not exist.
func (o *Overrides) rule(one *Override) *rule.Entry {
	table, _ := o.options.Engine.Rules()
	return table.Find(one.Rule)
}

// names reports whether a key, as people write it, is the client of an override.
func (o *Overrides) names(key string, one *Override) bool {
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
