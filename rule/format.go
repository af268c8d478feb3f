package rule

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/weirhq/weir"
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

// ruleElement adds the fields in the order of ruleFields.
func ruleElement(r *Rule) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	e.Add("id", document.NewText(r.ID))
	e.Add("description", unless("", r.Description, document.NewText))
	e.Add("match", matchElement(&r.Match))
	e.Add("key", oneOrList(sourceTexts(r.Key)))
	e.Add("algorithm", unless(weir.TokenBucket.String(), r.Algorithm.String(), document.NewText))
	addQuota(e, r.Quota)
	e.Add("buckets", unless(0, int64(r.Buckets), document.NewInteger))
	e.Add("shape", unless(false, r.Shape, document.NewTruth))
	e.Add("concurrency", unless(0, r.Quota.Concurrency, document.NewInteger))
	e.Add("hold_ttl", unless(0, r.HoldTTL, spanElement))
	e.Add("wait", waitElement(r.Wait))
	e.Add("priority", unless("", r.Priority.String(), document.NewText))
	e.Add("shares", sharesElement(r.Shares))
	e.Add("tiers", quotasElement(r.Tiers))
	e.Add("overrides", quotasElement(r.Overrides))
	e.Add("mode", unless(Enforce.String(), r.Mode.String(), document.NewText))
	e.Add("on_failure", unless(r.usualFailure().String(), r.OnFailure.String(), document.NewText))
	e.Add("count_denied", unless(false, r.CountDenied, document.NewTruth))
	e.Add("cost", costElement(r))
	e.Add("count", countElement(r.Count))
	e.Add("unit", unless("", r.Unit, document.NewText))
	e.Add("on_expiry", unless(Keep.String(), r.OnExpiry.String(), document.NewText))
	e.Add("tokens", tokensElement(r.Tokens))
	e.Add("penalty", penaltyElement(r.Penalty))
	e.Add("warn", thresholdsElement(r.Warn))
	e.Add("deny", denyElement(r.Deny))
	return e
}

// unless writes a value, and nothing if it is what goes without saying.
func unless[T comparable](usual, value T, write func(T) *document.Element) *document.Element {
	if value == usual {
		return nil
	}
	return write(value)
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
	e.Add("when", unless("", m.When, document.NewText))
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

func sourceTexts(key []Source) []string {
	texts := make([]string, len(key))
	for i, s := range key {
		texts[i] = s.String()
	}
	return texts
}

func costElement(r *Rule) *document.Element {
	number := unless(1, cmp.Or(r.Cost, 1), document.NewInteger)
	if r.CostEstimate == "" && r.CostActual == "" {
		return number
	}
	e := &document.Element{Kind: document.Mapping}
	if r.CostEstimate == "" {
		e.Add("estimate", number)
	} else {
		e.Add("estimate", document.NewText(r.CostEstimate))
		e.Add("default", number)
	}
	e.Add("actual", unless("", r.CostActual, document.NewText))
	return e
}

func countElement(c Count) *document.Element {
	if len(c.Status) == 0 {
		return nil
	}
	list := &document.Element{Kind: document.List}
	for _, s := range c.Status {
		if s.First == s.Last {
			list.Items = append(list.Items, document.NewInteger(int64(s.First)))
		} else {
			list.Items = append(list.Items, document.NewText(s.String()))
		}
	}
	if len(list.Items) == 1 {
		list = list.Items[0]
	}
	e := &document.Element{Kind: document.Mapping}
	e.Add("status", list)
	return e
}

func denyElement(d Deny) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	e.Add("status", unless(429, cmp.Or(int64(d.Status), 429), document.NewInteger))
	e.Add("code", unless(0, int64(d.Code), document.NewInteger))
	e.Add("message", unless("", d.Message, document.NewText))
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

// addQuota adds limit or limits, burst, zone and starts.
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
	e.Add("burst", unless(0, q.Burst, document.NewInteger))
	e.Add("zone", unless("", q.Zone, document.NewText))
	e.Add("starts", unless("", q.Starts, startElement))
}

// quotasElement writes a quota that is nothing but a limit as that.
func quotasElement(quotas map[string]Quota) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		q := &document.Element{Kind: document.Mapping}
		addQuota(q, quotas[name])
		q.Add("concurrency", unless(0, quotas[name].Concurrency, document.NewInteger))
		q.Add("priority", unless("", quotas[name].Priority.String(), document.NewText))
		if limit := q.Get("limit"); limit != nil && len(q.Members) == 1 {
			q = limit
		}
		e.Add(name, q)
	}
	return e.OrNil()
}
