package rule

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
)

// Format writes a set as YAML, always in the same way: fields in the order of the
// reference, maps by name, one value instead of a list of one, and no defaults.
// Parse gives the set back. API keys are in it as they are in the set.
func Format(set *Set) []byte {
	text, err := setElement(set).YAML()
	if err != nil {
		// The tree has texts, numbers, lists and mappings only, which can all be
		// written. Should that ever fail, JSON is YAML, too.
		return append(ToJSON(set), '\n')
	}
	return text
}

// ToJSON writes a set as JSON, with the same fields as Format.
func ToJSON(set *Set) []byte { return setElement(set).JSON() }

// RuleToJSON writes one rule as JSON, as ParseRule reads it.
func RuleToJSON(r *Rule) []byte { return ruleElement(r).JSON() }

// MarshalJSON is ToJSON.
func (s Set) MarshalJSON() ([]byte, error) { return ToJSON(&s), nil }

// UnmarshalJSON is Parse, without the warnings.
func (s *Set) UnmarshalJSON(source []byte) error {
	set, problems := Parse("", source)
	if err := problems.Err(); err != nil {
		return err
	}
	*s = *set
	return nil
}

// MarshalJSON is RuleToJSON.
func (r Rule) MarshalJSON() ([]byte, error) { return RuleToJSON(&r), nil }

// UnmarshalJSON is ParseRule, without the warnings.
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

// ruleElement adds the fields in the order of ruleFields.
func ruleElement(r *Rule) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	e.Add("id", document.NewText(r.ID))
	if r.Description != "" {
		e.Add("description", document.NewText(r.Description))
	}
	e.Add("match", matchElement(&r.Match))
	e.Add("key", keyElement(r.Key))
	if r.Algorithm != weir.TokenBucket {
		e.Add("algorithm", document.NewText(r.Algorithm.String()))
	}
	addQuota(e, r.Quota)
	if r.Buckets != 0 {
		e.Add("buckets", document.NewInteger(int64(r.Buckets)))
	}
	if r.Shape {
		e.Add("shape", document.NewTruth(true))
	}
	e.Add("tiers", quotasElement(r.Tiers))
	e.Add("overrides", quotasElement(r.Overrides))
	if r.Mode != Enforce {
		e.Add("mode", document.NewText(r.Mode.String()))
	}
	if r.OnFailure != Open {
		e.Add("on_failure", document.NewText(r.OnFailure.String()))
	}
	if r.CountDenied {
		e.Add("count_denied", document.NewTruth(true))
	}
	if r.Cost != 0 && r.Cost != 1 {
		e.Add("cost", document.NewInteger(r.Cost))
	}
	e.Add("deny", denyElement(r.Deny))
	return e
}

func matchElement(m *Match) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	e.Add("method", oneOrList(m.Methods))
	e.Add("host", oneOrList(m.Hosts))
	e.Add("path", oneOrList(m.Paths))
	attributes := &document.Element{Kind: document.Mapping}
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		values := m.Attributes[name]
		if len(values) == 0 {
			values = []string{anyValue}
		}
		attributes.Add(name, oneOrList(values))
	}
	e.Add("attributes", attributes.OrNil())
	return e.OrNil()
}

// oneOrList is nil for none.
func oneOrList(values []string) *document.Element {
	switch len(values) {
	case 0:
		return nil
	case 1:
		return document.NewText(values[0])
	}
	return document.NewList(values)
}

func keyElement(key []Source) *document.Element {
	parts := make([]string, len(key))
	for i, s := range key {
		parts[i] = s.String()
	}
	return oneOrList(parts)
}

func denyElement(d Deny) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	if d.Status != 0 && d.Status != 429 {
		e.Add("status", document.NewInteger(int64(d.Status)))
	}
	if d.Code != 0 {
		e.Add("code", document.NewInteger(int64(d.Code)))
	}
	if d.Message != "" {
		e.Add("message", document.NewText(d.Message))
	}
	return e.OrNil()
}

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

// addQuota adds limit or limits, and burst.
func addQuota(e *document.Element, q Quota) {
	switch len(q.Rates) {
	case 0:
		if q.Unlimited {
			e.Add("limit", document.NewText(unlimited))
		}
	case 1:
		e.Add("limit", document.NewText(q.Rates[0].String()))
	default:
		rates := make([]string, len(q.Rates))
		for i, r := range q.Rates {
			rates[i] = r.String()
		}
		e.Add("limits", document.NewList(rates))
	}
	if q.Burst != 0 {
		e.Add("burst", document.NewInteger(q.Burst))
	}
}

// quotasElement writes a quota that is nothing but a limit as that.
func quotasElement(quotas map[string]Quota) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		q := &document.Element{Kind: document.Mapping}
		addQuota(q, quotas[name])
		if limit := q.Get("limit"); limit != nil && len(q.Members) == 1 {
			q = limit
		}
		e.Add(name, q)
	}
	return e.OrNil()
}
