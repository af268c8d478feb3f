package rule

import (
	"crypto/sha256"

	"github.com/weirhq/weir/internal/match"
)

// checkSet checks what can only be seen when all is read.
func (p *parser) checkSet() {
	p.checkIDs()
	p.checkTwins()
	p.checkMethodCount()
	p.warn()
}

func (p *parser) checkIDs() {
	first := make(map[string]int, len(p.read))
	for i := range p.read {
		id := p.set.Rules[i].ID
		if id == "" {
			continue
		}
		if before, twice := first[id]; twice {
			p.report.rule = id
			p.errorf("E009", p.read[i].id, "id", "the rule in line %d is called %s, too, and the two would share what a client has used; rename one", p.read[before].id.Line, id)
			continue
		}
		first[id] = i
	}
	p.report.rule = ""
}

// checkTwins finds rules that do the same: whatever one of them admits or refuses,
// so does the other.
func (p *parser) checkTwins() {
	first := make(map[[sha256.Size]byte]int, len(p.read)) // by a hash, since rules may be long
	for i := range p.read {
		twin := p.set.Rules[i]
		if p.read[i].broken || twin.Mode == Off {
			continue
		}
		twin.ID, twin.Description, twin.Deny = "", "", Deny{}
		key := sha256.Sum256(ruleElement(&twin).JSON())
		if before, found := first[key]; found {
			p.report.rule = p.set.Rules[i].ID
			p.errorf("E025", p.read[i].at, "", "this rule does just what %s in line %d does, and could never refuse anything more; remove it, or change match, key or limit", p.set.Rules[before].ID, p.read[before].at.Line)
			continue
		}
		first[key] = i
	}
	p.report.rule = ""
}

// checkMethodCount keeps a promise to Compile.
func (p *parser) checkMethodCount() {
	known := map[string]bool{}
	for i := range p.read {
		for _, m := range p.set.Rules[i].Match.Methods {
			known[m] = true
		}
		if len(known) > match.MaxMethods {
			p.errorf("E021", p.read[i].at, "match: method", "all rules together name %d different ones, at most %d are taken; leave method out where it makes no difference", len(known), match.MaxMethods)
			return
		}
	}
}
