package rule

import (
	"github.com/weirhq/weir/internal/document"
)

// Bounds on a document of rules, besides those of package document.
const (
	// MaxDocument is the longest document, in bytes.
	MaxDocument = document.MaxSize

	// MaxRules is the most rules that one document may have.
	MaxRules = 100_000
)

// Parse reads a document of rules, in YAML or JSON. The name is for messages; if it
// ends in .json, nothing but JSON will do.
//
// The problems are everything that is wrong with the document, errors and warnings,
// in its order. With errors there is no set; [Problems.Err] tells. What is
// returned compiles.
//
// The set is as short as can be: a default that was written out is left out, as if
// it had not been. Hosts are in small letters and names of headers as
// http.CanonicalHeaderKey has them.
func Parse(name string, source []byte) (*Set, Problems) {
	p := newParser(name, source)
	if root := document.Read(name, source, p.fault); root != nil {
		p.document(root)
	}
	problems := p.done()
	if problems.Err() != nil {
		return nil, problems
	}
	return p.set, problems
}

// ParseRule reads a document that is one rule, as Parse does.
func ParseRule(name string, source []byte) (*Rule, Problems) {
	p := newParser(name, source)
	if root := document.Read(name, source, p.fault); root != nil {
		p.single = true
		p.add(root)
		p.checkSet()
	}
	problems := p.done()
	if problems.Err() != nil {
		return nil, problems
	}
	return &p.set.Rules[0], problems
}

// Validate reports what Parse would say of a set that was made in Go, had it been
// written as Format does; lines and columns are of that document.
func Validate(name string, set *Set) Problems {
	_, problems := Parse(name, Format(set))
	return problems
}

// parser makes a set of a document.
type parser struct {
	*report
	set     *Set
	pending []*pending
	lists   []*pendingList
	single  bool  // one rule by itself, which says nothing of the others
	backed  *bool // see backstop
}

// pending is a rule that was read but not yet checked against the others.
type pending struct {
	Rule
	at     document.Place
	fields fields
	quotas []placedQuota
	broken bool // not all of it could be read
}

func newParser(name string, source []byte) *parser {
	return &parser{report: newReport(name, source), set: new(Set)}
}

func (p *parser) document(root *document.Element) {
	if root.Kind == document.Nothing {
		return
	}
	f := p.fields(root, "the document", documentFields)
	if rules := f["rules"]; rules != nil && rules.Kind != document.Nothing {
		p.rules(rules)
	}
	p.set.Exempt = p.list("exempt", f["exempt"])
	p.set.Block = p.list("block", f["block"])
	p.checkSet()
}

func (p *parser) rules(e *document.Element) {
	if e.Kind != document.List {
		p.errorf("E006", e.Place, "rules: this is %s; write a list, one rule after a dash each", e.Describe())
		return
	}
	if len(e.Items) > MaxRules {
		p.errorf("E002", e.Items[MaxRules].Place, "rules: there are %d, at most %d are taken; match several paths or clients by one rule", len(e.Items), MaxRules)
		return
	}
	for _, item := range e.Items {
		p.add(item)
	}
}

// add reads a rule and adds it to the set.
func (p *parser) add(e *document.Element) {
	before := p.count()
	r := p.rule(e)
	r.broken = p.count() > before
	p.pending = append(p.pending, r)
	p.set.Rules = append(p.set.Rules, r.Rule)
	p.report.rule = ""
}
