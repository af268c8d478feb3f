package rule

import (
	"net/netip"

	"github.com/weirhq/weir/internal/document"
)

// Format returns a set as canonical YAML: fields in the order of the reference, maps
// sorted by name, one value instead of a list of one, and no defaults. Parse returns
// the same set. API keys are written as they are in the set.
func Format(set *Set) []byte {
	text, err := setElement(set).YAML()
	if err != nil {
		// The tree has texts, numbers, lists and mappings only, which can all be
		// written. Should that ever fail, JSON is YAML, too.
		return append(ToJSON(set), '\n')
	}
	return text
}

// ToJSON returns a set as JSON, with the same fields as Format.
func ToJSON(set *Set) []byte { return setElement(set).JSON() }

// RuleToJSON returns one rule as JSON, which ParseRule accepts.
func RuleToJSON(r *Rule) []byte { return ruleElement(r).JSON() }

// MarshalJSON returns the result of ToJSON.
func (s Set) MarshalJSON() ([]byte, error) { return ToJSON(&s), nil }

// UnmarshalJSON parses a set as Parse does, and ignores warnings.
func (s *Set) UnmarshalJSON(source []byte) error {
	set, problems := Parse("", source)
	if err := problems.Err(); err != nil {
		return err
	}
	*s = *set
	return nil
}

// MarshalJSON returns the result of RuleToJSON.
func (r Rule) MarshalJSON() ([]byte, error) { return RuleToJSON(&r), nil }

// UnmarshalJSON parses a rule as ParseRule does, and ignores warnings.
func (r *Rule) UnmarshalJSON(source []byte) error {
	parsed, problems := ParseRule("", source)
	if err := problems.Err(); err != nil {
		return err
	}
	*r = *parsed
	return nil
}

func setElement(set *Set) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	if len(set.Rules) > 0 {
		rules := &document.Element{Kind: document.List}
		for i := range set.Rules {
			rules.Items = append(rules.Items, ruleElement(&set.Rules[i]))
		}
		e.Add("rules", rules)
	}
	e.Add("exempt", listElement(set.Exempt))
	e.Add("block", listElement(set.Block))
	return e
}

func ruleElement(r *Rule) *document.Element { return ruleFields.element(r) }

func listElement(l List) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	ips := make([]string, len(l.IPs))
	for i, network := range l.IPs {
		ips[i] = networkText(network)
	}
	for i, values := range [][]string{ips, l.Users, l.APIKeys} {
		if len(values) > 0 {
			e.Add(listFields[i], document.NewList(values))
		}
	}
	return e.OrNil()
}

// networkText writes a network of one address as the address.
func networkText(n netip.Prefix) string {
	if n.IsSingleIP() {
		return n.Addr().String()
	}
	return n.String()
}
