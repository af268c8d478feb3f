package rule

import (
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
)

// maxTiers bounds the different tiers that are compared, because each is compared with each.
const maxTiers = 64

// tierUse is where a tier stands.
type tierUse struct {
	name  string
	first int // the first rule that has it
	rules int // that have it
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
	misspelled := map[string]bool{}
	for i := range p.read {
		for _, t := range p.tiersOf(i) {
			if near := p.nearTier(i, known[t.value], order); near != nil {
				misspelled[t.value] = true
				p.report.rule = p.set.Rules[i].ID
				p.warnf("W018", t.at, "tiers", "no other rule has the tier %s; did you mean %s, as in the rule %s?", document.Quote(t.value), document.Quote(near.name), p.set.Rules[near.first].ID)
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
			if _, has := p.set.Rules[i].Tiers[use.name]; !has && !misspelled[use.name] && !p.spellsOther(i, use, misspelled) {
				lacks = append(lacks, document.Quote(use.name)+" of the rule "+p.set.Rules[use.first].ID)
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

// nearTier is a tier of other rules alone of which a tier, which only the i-th rule has, is probably a misspelling. Of two
// that one rule each has, it is the later one.
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

// spellsOther reports whether the rule has a tier that is a misspelling of another.
func (p *parser) spellsOther(i int, use *tierUse, misspelled map[string]bool) bool {
	for name := range p.set.Rules[i].Tiers {
		if misspelled[name] && isNear(name, use.name) {
			return true
		}
	}
	return false
}

func isNear(a, b string) bool {
	return strings.EqualFold(a, b) || notation.Nearest(a, []string{b}) != ""
}
