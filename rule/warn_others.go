package rule

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/match"
	"github.com/weirhq/weir/internal/notation"
)

// maxTiers bounds the different tiers that are compared, because each is compared with each.
const maxTiers = 64

// tierUse is where a tier stands.
type tierUse struct {
	name  string
	first int      // the first rule that has it
	rules int      // that have it
	also  *tierUse // which is probably the same in another spelling, if it has been found
}

// warnTiers finds tiers that one rule has and another lacks, or spells in another way.
func (p *parser) warnTiers() {
	known, order := map[string]*tierUse{}, []*tierUse{}
	for i := range p.read {
		for _, t := range p.tiersOf(i) {
			use := known[t.value]
			if use == nil {
				if len(known) == maxTiers {
					return
				}
				use = &tierUse{name: t.value, first: i}
				known[t.value], order = use, append(order, use)
			}
			use.rules++
		}
	}
	other := map[string]*tierUse{} // what a name is another spelling of
	for i := range p.read {
		for _, t := range p.tiersOf(i) {
			if near := p.nearTier(i, known[t.value], order); near != nil {
				other[t.value], near.also = near, known[t.value]
				p.report.rule = p.set.Rules[i].ID
				p.warnf("W018", t.at, "tiers", "the rule %s has the tier %s, and the rule %s has %s; if they are the same, write both in the same way",
					p.set.Rules[i].ID, document.Quote(t.value), p.set.Rules[near.first].ID, document.Quote(near.name))
			}
		}
	}
	for i := range p.read {
		tiers := p.tiersOf(i)
		if len(tiers) == 0 {
			continue
		}
		var lacks []string
		for _, use := range order {
			if _, has := p.set.Rules[i].Tiers[use.name]; !has && other[use.name] == nil && !p.spellsOther(i, use, other) {
				lack := document.Quote(use.name) + " of the rule " + p.set.Rules[use.first].ID
				if use.also != nil {
					lack += " (" + document.Quote(use.also.name) + " of the rule " + p.set.Rules[use.also.first].ID + ")"
				}
				lacks = append(lacks, lack)
			}
		}
		if len(lacks) > 0 {
			p.report.rule = p.set.Rules[i].ID
			p.warnf("W018", tiers[0].at, "tiers", "the rule lacks the tier %s, so requests of that tier get the limit without a tier; add it", fewOf(lacks, 3))
		}
	}
	p.report.rule = ""
}

// tiersOf are the tiers of a rule that is in force.
func (p *parser) tiersOf(i int) []placed[string] {
	if p.read[i].broken || p.set.Rules[i].Mode == Off {
		return nil
	}
	return p.read[i].tiers
}

// nearTier is a tier of other rules alone that is probably the same as a tier which only the i-th rule has. Which of the two
// is right nobody knows. Of two that one rule each has, the earlier one stands for both.
func (p *parser) nearTier(i int, use *tierUse, all []*tierUse) *tierUse {
	if use.rules > 1 {
		return nil
	}
	for _, other := range all {
		_, both := p.set.Rules[i].Tiers[other.name]
		if !both && (other.rules > 1 || other.first < i) && isNear(use.name, other.name) {
			return other
		}
	}
	return nil
}

// spellsOther reports whether the rule has a tier in another spelling.
func (p *parser) spellsOther(i int, use *tierUse, other map[string]*tierUse) bool {
	for name := range p.set.Rules[i].Tiers {
		if other[name] == use {
			return true
		}
	}
	return false
}

func isNear(a, b string) bool {
	return strings.EqualFold(a, b) || notation.Nearest(a, []string{b}) != ""
}

// maxCompared bounds the pairs of conditions that warnEarlier compares in a document, because a long one has too many.
const maxCompared = 100_000

// warnEarlier finds rules that leave out what earlier rules deny, where no earlier rule matches the same requests. A mode is
// for a while, so one that only watches counts as one that denies.
func (p *parser) warnEarlier() {
	left := maxCompared
	for i := range p.read {
		r := &p.set.Rules[i]
		if p.single || !r.UnlessDeniedEarlier || p.read[i].broken || r.Mode == Off {
			continue
		}
		found := false
		for j := i - 1; j >= 0 && !found; j-- {
			earlier := &p.set.Rules[j]
			if left -= earlier.Match.pairs(&r.Match); left < 0 {
				return
			}
			found = p.read[j].broken || earlier.Mode != Off && earlier.Match.meets(&r.Match)
		}
		if !found {
			p.report.rule = r.ID
			p.warnf("W019", p.read[i].countDenied, "count_denied", "no earlier rule matches the same requests, so %s is the same as true; move the rule below those whose denials should not count, or write true", unlessDeniedEarlier)
		}
	}
	p.report.rule = ""
}

// maxAsking bounds the rules that warnAsking compares with each other one.
const maxAsking = 64

// warnAsking finds rules with a lease of which each request asks the store anyway, for another rule that matches all requests.
func (p *parser) warnAsking() {
	var asking []*Rule
	for i := range p.read {
		r := &p.set.Rules[i]
		if !p.read[i].broken && r.Mode != Off && r.matchesAll() && r.alwaysAsks() && len(asking) < maxAsking {
			asking = append(asking, r)
		}
	}
	for i := range p.read {
		r := &p.set.Rules[i]
		if r.Lease == 0 || p.read[i].broken || r.Mode == Off || r.alwaysAsks() {
			continue
		}
		if j := slices.IndexFunc(asking, func(other *Rule) bool { return other.appliesWith(r) }); j >= 0 {
			p.report.rule = r.ID
			p.warnf("W023", p.read[i].lease, "lease", "each request also asks the store for rule %s, which matches all requests and whose units cannot be leased; remove the lease", document.Quote(asking[j].ID))
		}
	}
	p.report.rule = ""
}

// alwaysAsks reports whether units of the rule cannot be leased.
func (r *Rule) alwaysAsks() bool {
	return r.Quota.Concurrency > 0 || r.Shape || r.CountDenied || r.OnExpiry == Release || r.Penalty.For != 0
}

// appliesWith reports whether each request with the key of another rule has that of this one.
func (r *Rule) appliesWith(other *Rule) bool {
	return !slices.ContainsFunc(r.Key, func(s Source) bool { return s.Kind != Global && s.Kind != IP && !slices.Contains(other.Key, s) })
}

// pairs is how many conditions meets compares at most.
func (m *Match) pairs(other *Match) int {
	n := 1 + len(m.Methods)*len(other.Methods) + len(m.Hosts)*len(other.Hosts) + len(m.Paths)*len(other.Paths)
	for name, values := range m.Attributes {
		n += 1 + len(values)*len(other.Attributes[name])
	}
	return n
}

// meets reports whether a request can meet the conditions of both. In doubt, it can.
func (m *Match) meets(other *Match) bool {
	for name, values := range m.Attributes {
		if !someMeet(values, other.Attributes[name], func(a, b string) bool { return a == b || a == match.Any || b == match.Any }) {
			return false
		}
	}
	return someMeet(m.Methods, other.Methods, func(a, b string) bool { return a == b || a == match.Any || b == match.Any }) &&
		someMeet(m.Hosts, other.Hosts, hostsMeet) && someMeet(m.Paths, other.Paths, pathsMeet)
}

// someMeet reports whether one of each can be met at once. None are any.
func someMeet(a, b []string, meet func(a, b string) bool) bool {
	if len(a) == 0 || len(b) == 0 {
		return true
	}
	return slices.ContainsFunc(a, func(a string) bool {
		return slices.ContainsFunc(b, func(b string) bool { return meet(a, b) })
	})
}

// hostsMeet takes a star for any beginning.
func hostsMeet(a, b string) bool {
	endA, anyA := strings.CutPrefix(a, match.Any)
	endB, anyB := strings.CutPrefix(b, match.Any)
	return a == b || anyA && strings.HasSuffix(endB, endA) || anyB && strings.HasSuffix(endA, endB)
}

// pathsMeet compares patterns segment by segment. What a server may read in another way is in doubt.
func pathsMeet(a, b string) bool {
	for {
		var nameA, nameB string
		nameA, a, _ = strings.Cut(strings.TrimPrefix(a, "/"), "/")
		nameB, b, _ = strings.Cut(strings.TrimPrefix(b, "/"), "/")
		switch {
		case nameA == "**" || nameB == "**" || nameA == "" && nameB == "":
			return true
		case nameA == "" || nameB == "":
			return false
		case !strings.ContainsAny(nameA+nameB, "{%") && !strings.EqualFold(nameA, nameB):
			return false
		}
	}
}
