package rule

import (
	"errors"

	"github.com/weirhq/weir"
)

// Explanation tells, for people, how a rule treats a request.
type Explanation struct {
	Rule    *Entry
	Matches bool // the request meets all conditions
	Applies bool // it matches, the rule is not off, and the request has all parts of the key

	// Why lists the reasons why the rule does not apply, one sentence each: "method is
	// GET, the rule wants POST". Empty if it applies.
	Why []string

	// Identity is the key that a store counts by. It is "" if a part is missing.
	Identity string

	// Quota tells where the limits come from: "default", "level org", "tier pro", "override" or "limits of user:ann". It
	// is "" if the rule does not apply.
	Quota  string
	Limits []*weir.Compiled // empty if unlimited
}

// Explain tells for each rule, in the order of the document, whether it applies to the
// request and why not. If a request counts for several clients under a rule, such as one whose
// path matches several routes, there is an Explanation for each. Explain tests the rules one
// by one, which is slow.
func (t *Table) Explain(req *Request) []Explanation {
	all := make([]Explanation, 0, len(t.rules))
	for _, c := range t.rules {
		all = c.explain(all, req)
	}
	return all
}

func (c *Entry) explain(all []Explanation, req *Request) []Explanation {
	e := Explanation{Rule: c, Why: c.match.Unmet(req.conditions())}
	if len(e.Why) == 0 {
		if applies, err := c.applies(req); !applies {
			e.Why = append(e.Why, "the expression of when is false")
		} else if err != nil {
			e.Why = append(e.Why, "the expression of when cannot read the request")
		}
	}
	e.Matches = len(e.Why) == 0
	identities, ends, err := Hit{Entry: c}.Identities(nil, nil, req)
	var many *ValuesError
	switch {
	case errors.As(err, &many):
		e.Why = append(e.Why, "the request has too many values for "+many.What)
	case len(ends) == 0:
		e.Why = append(e.Why, c.whyIdentity(req)...)
	}
	if c.Mode == Off {
		e.Why = append(e.Why, "the rule is off")
	}
	if len(ends) == 0 {
		return append(all, e)
	}
	from := 0
	for _, end := range ends {
		e.Identity, from = string(identities[from:end]), end
		if e.Applies = len(e.Why) == 0; e.Applies {
			e.Quota, e.Limits = c.explainLimits(e.Identity, req)
		}
		all = append(all, e)
		if !e.Applies {
			break // it counts for none of them
		}
	}
	return all
}

// explainLimits are the limits of a client of the request, and where they come from.
func (c *Entry) explainLimits(identity string, req *Request) (origin string, limits []*weir.Compiled) {
	tier := req.tier()
	found, known := Counted{}, false
	if req.line.in != nil {
		if found, known = req.line.in.Counts(c, identity, req); known {
			tier = c.TierAt(found, tier)
		}
	}
	origin, limits = c.origin(identity, tier), c.Limits(identity, tier)
	if own, has := found.Of(c.ID); has {
		if compiled, err := c.CompileFor(identity, *own); err == nil {
			origin, limits = "limits of "+found.Name, compiled
		}
	}
	return origin, c.Dated(limits, found.Zone, found.Starts)
}

// origin is where the limits of a client come from.
func (c *Entry) origin(identity, tier string) string {
	if _, found := c.overrides[identity]; found {
		return "override"
	}
	tiers, usual := c.tiers, "default"
	if l := c.levelOf(identity); l != nil {
		tiers, usual = l.tiers, "level "+l.name
	}
	if _, found := tiers[tier]; found {
		return "tier " + tier
	}
	return usual
}

// ExplainLists tells why the request is on the exempt list and why it is on the block
// list, as in "10.1.2.3 is in 10.0.0.0/8". Each is "" if the request is not on that
// list.
func (t *Table) ExplainLists(req *Request) (exempt, blocked string) {
	return t.exempt.why(req), t.block.why(req)
}

func (l *list) why(req *Request) string {
	if network, found := l.network(req.IP); found {
		return canonicalIP(req.IP).String() + " is in " + network.String()
	}
	if user, _ := req.Client(); user != "" && l.has(User, user) {
		return "user " + user + " is on the list"
	}
	if l.has(APIKey, req.APIKey) {
		return "API key " + HashAPIKey(req.APIKey) + " is on the list"
	}
	return ""
}

// whyIdentity names the parts of the key that the request lacks.
func (c *Entry) whyIdentity(req *Request) (why []string) {
	for i := range c.key {
		if p := &c.key[i]; !p.in(req) {
			why = append(why, "the request has no "+p.describe()+", which the rule's key needs")
		}
	}
	if len(why) == 0 {
		why = append(why, "the request uses nothing of what the rule counts")
	}
	return why
}

// sourceWords are the kinds in words. From Header on, the name follows.
var sourceWords = []string{
	IP: "IP address", User: "user", APIKey: "API key", Global: "identity",
	Tier: "tier", Host: "host", Method: "method", Route: "route",
	Header: "header ", Cookie: "cookie ", Query: "query parameter ", Attribute: "attribute ", Level: "level ", Levels: "level",
}

func (p *part) describe() string {
	if p.source.Kind < Header {
		return sourceWords[p.source.Kind]
	}
	return sourceWords[p.source.Kind] + p.source.Name
}
