package rule

import (
	"github.com/weirhq/weir/internal/document"
)

// checkSet checks what can only be seen when all is read.
func (p *parser) checkSet() {
	p.checkIDs()
	p.checkTwins()
	p.checkMethodCount()
	p.warn()
}

func (p *parser) checkIDs() {
	first := map[string]document.Place{}
	for _, r := range p.pending {
		if r.ID == "" {
			continue
		}
		at := r.fields["id"].Place
		if before, twice := first[r.ID]; twice {
			p.report.rule = r.ID
			p.errorf("E009", at, "id: the rule in line %d is called %s, too, and the two would share what a client has used; rename one", before.Line, r.ID)
			continue
		}
		first[r.ID] = at
	}
	p.report.rule = ""
}

// checkTwins finds rules that do the same: whatever one of them admits or refuses,
// so does the other.
func (p *parser) checkTwins() {
	first := map[string]*pending{}
	for _, r := range p.pending {
		if r.broken || r.Mode == Off {
			continue
		}
		twin := r.Rule
		twin.ID, twin.Description, twin.Deny = "", "", Deny{}
		key := string(ruleElement(&twin).JSON())
		if before := first[key]; before != nil {
			p.report.rule = r.ID
			p.errorf("E025", r.at, "this rule does just what %s in line %d does, and could never refuse anything more; remove it, or change match, key or limit", before.ID, before.at.Line)
			continue
		}
		first[key] = r
	}
	p.report.rule = ""
}

// checkMethodCount keeps a promise to Compile.
func (p *parser) checkMethodCount() {
	known := map[string]bool{}
	for _, r := range p.pending {
		for _, m := range r.Match.Methods {
			known[m] = true
		}
		if len(known) > maxMethods {
			p.errorf("E021", r.at, "match: method: all rules together name %d different ones, at most %d are taken; leave method out where it makes no difference", len(known), maxMethods)
			return
		}
	}
}
