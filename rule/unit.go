package rule

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir"
)

const (
	// MaxUnit is the maximum length of a unit in bytes.
	MaxUnit = 40

	// tokensUnit is the unit of rules that count tokens, each as much as any other.
	tokensUnit = "tokens"

	maxNamedUnits = 20 // in an error
)

// ValidateUnit reports why a text cannot be the unit of a rule.
func ValidateUnit(unit string) error {
	switch {
	case len(unit) > MaxUnit:
		return fmt.Errorf("%d bytes exceed the maximum of %d; shorten it", len(unit), MaxUnit)
	case strings.Trim(unit, unitLetters) != "":
		return fmt.Errorf("%q has characters other than lower-case letters, digits, dashes and underscores; write for example tokens", unit)
	}
	return nil
}

const unitLetters = "abcdefghijklmnopqrstuvwxyz0123456789_-"

// CostUnit returns the unit in which a request can state its cost under the rule: Unit or, for a
// rule that counts tokens without weights, "tokens".
func (r *Rule) CostUnit() string {
	if r.Unit == "" && r.Tokens != nil && !r.Tokens.Weighted() {
		return tokensUnit
	}
	return cmp.Or(r.Unit, r.currency())
}

var errWeightedUnit = errors.New("a rule with weights does not count tokens as such; name what it counts, for example unit: microdollars")

// validateUnit reports why the rule cannot have its unit.
func (r *Rule) validateUnit() error {
	if r.Unit == tokensUnit && r.Tokens.Weighted() {
		return errWeightedUnit
	}
	return ValidateUnit(r.Unit)
}

// ValidateCost reports why the cost that a request states is none under the rule: a number of
// tokens does not tell what they cost if the rule has weights. The error is a
// [weir.InvalidError].
func (c *Entry) ValidateCost(req *Request) error {
	if !c.Tokens.Weighted() || req.Prompt != nil {
		return nil
	}
	_, tokens := req.Costs[tokensUnit]
	if _, stated := req.Costs[c.CostUnit()]; stated && c.CostUnit() != "" || !tokens && req.Cost == 0 {
		return nil
	}
	return c.Uncounted("cost")
}

// Uncounted returns the [weir.InvalidError] for a number of tokens in a field, under a rule with
// weights.
func (c *Entry) Uncounted(field string) error {
	remedy := "give the rule a unit, and send the number in that unit"
	if unit := c.CostUnit(); unit != "" {
		remedy = fmt.Sprintf(`send {"%s": …}`, unit)
	}
	what := "has weights"
	if c.Tokens.priced() {
		what, remedy = "counts "+currencyName(c.money), remedy+", in millionths"
	}
	return &weir.InvalidError{Field: field, Reason: fmt.Sprintf("the rule %s %s, so a number of tokens does not tell what they cost; %s", c.ID, what, remedy)}
}

// Weighted reports whether a rule of the table, even if it is off, has weights of tokens.
func (t *Table) Weighted() bool { return t.weighted }

// ValidateUnits reports which of the units in a field neither a rule of the table has, even if
// it is off, nor others name. The error is a [weir.InvalidError].
func (t *Table) ValidateUnits(field string, numbers map[string]int64, others ...string) error {
	for _, unit := range slices.Sorted(maps.Keys(numbers)) {
		if _, known := slices.BinarySearch(t.units, unit); known || slices.Contains(others, unit) {
			continue
		}
		known := slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.units, others))))
		reason := fmt.Sprintf("no rule has the unit %.*q; there are %s", MaxUnit, unit, fewOf(known, maxNamedUnits))
		if len(known) == 0 {
			reason = fmt.Sprintf("no rule has the unit %.*q, or any other; send one number", MaxUnit, unit)
		}
		return &weir.InvalidError{Field: field, Reason: reason}
	}
	return nil
}

// addUnit takes note of the unit of a rule.
func (t *Table) addUnit(r *Rule) {
	t.weighted = t.weighted || r.Tokens.Weighted()
	unit := r.CostUnit()
	if at, known := slices.BinarySearch(t.units, unit); !known && unit != "" {
		t.units = slices.Insert(t.units, at, unit)
	}
}
