package rule

import (
	"context"
	"net/netip"

	"github.com/weirhq/weir/internal/budget"
	"github.com/weirhq/weir/internal/document"
)

// Bounds on a document of rules, besides those of package document.
const (
	// MaxDocument is the maximum length of a document in bytes.
	MaxDocument = document.MaxSize

	// MaxRules is the maximum number of rules in a document.
	MaxRules = 30_000

	// MaxOverrides is the maximum number of tiers and overrides in all rules of a
	// document together.
	MaxOverrides = 100_000
)

// Parse parses a document of rules: JSON, or YAML in a program that imports package
// rule/rulefile. Messages contain the name; if it ends in .json, only JSON is accepted.
//
// Parse returns all problems of the document, errors and warnings, in its order. If
// there are errors, the set is nil; [Problems.Err] returns them. A set that Parse
// returns compiles.
//
// The set is minimal: values that equal the default are omitted. Hosts are in lower
// case, and names of headers are as in http.CanonicalHeaderKey.
//
// Parse needs at most MaxMemory. A process parses at most three documents that need as
// much at the same time; others wait.
func Parse(name string, source []byte) (*Set, Problems) {
	return parse(name, source, func(p *parser, text string) {
		if root := document.ReadEach(name, text, p.fault, "rules", p.addRule); root != nil {
			p.document(root)
		}
	})
}

// ParseRule parses a document that contains one rule, as Parse does.
func ParseRule(name string, source []byte) (*Rule, Problems) {
	set, problems := parse(name, source, func(p *parser, text string) {
		if root := document.Read(name, text, p.fault); root != nil {
			p.single = true
			p.addRule(root)
			p.checkSet()
		}
	})
	if set == nil {
		return nil, problems
	}
	return &set.Rules[0], problems
}

// parse returns the set that a reader makes of a document, if there are no errors.
func parse(name string, source []byte, read func(*parser, string)) (*Set, Problems) {
	defer makeRoom(len(source))()
	text := string(source)
	r := &report{file: name, quoter: document.NewQuoter(text), seen: map[seen]bool{}, faults: map[document.Position]bool{}}
	p := &parser{report: r, set: new(Set)}
	read(p, text)
	set := p.set
	p.set, p.read, p.lists = nil, nil, nil // excerpts need room, too
	problems := r.done()
	if problems.Err() != nil {
		return nil, problems
	}
	return set, problems
}

// Validate returns the problems that Parse would report for a set that was built in Go.
// Lines and columns refer to the output of Format.
func Validate(name string, set *Set) Problems {
	_, problems := Parse(name, Format(set))
	return problems
}

// parser makes a set of a document. Of a rule that was read it keeps no more than what
// the others have to be compared with: a document may be long.
type parser struct {
	*report
	set    *Set
	read   []remainder       // one for each rule of the set
	count  int               // of the rules in the document
	beyond document.Position // the first rule that is one too many
	quotas int               // tiers and overrides in the document

	expressions, expressionBytes int // in the document
	lists                        []*pendingList
	levelUses                    []levelUse
	single                       bool  // one rule by itself, which says nothing of the others
	backed                       *bool // see backstop
}

// remainder is what is left to be checked of a rule against the others.
type remainder struct {
	at, id, key document.Position
	countDenied document.Position
	lease       document.Position
	overrides   []placed[string] // whom they name
	tiers       []placed[string] // their names
	broken      bool             // not all of it could be read
}

// pending is a rule that is being read.
type pending struct {
	Rule
	at     document.Position
	fields fields
	quotas []placedQuota
}

func (p *parser) document(root *document.Element) {
	if root.Kind == document.Nothing {
		return
	}
	f := p.fields(root, wholeDocument, documentFields)
	switch rules := f["rules"]; {
	case rules == nil || rules.Kind == document.Nothing:
	case rules.Kind != document.List:
		p.errorf("E006", rules.Position, "rules", "this is %s; write a list, with a dash before each rule", rules.Describe())
	case p.count > MaxRules:
		p.forget() // there is no use in mending the rules before
		p.read, p.set.Rules = nil, nil
		p.errorf("E002", p.beyond, "rules", "%d rules exceed the maximum of %d; match several paths or clients with one rule", p.count, MaxRules)
	}
	p.readLevels(f["levels"])
	p.set.Exempt = p.list("exempt", f["exempt"])
	p.set.Block = p.list("block", f["block"])
	p.checkSet()
}

// addRule reads a rule and adds it to the set.
func (p *parser) addRule(e *document.Element) {
	if p.count++; p.count > MaxRules {
		if p.count == MaxRules+1 {
			p.beyond = e.Position
		}
		return
	}
	before := p.found()
	r := p.rule(e)
	rest := remainder{at: r.at, id: r.field("id"), key: r.field("key"), countDenied: r.field("count_denied"), lease: r.field("lease"), overrides: r.names("overrides"), tiers: r.names("tiers"), broken: p.found() > before}
	if !rest.broken && r.Mode != Off {
		p.warnLimits(r)
		p.warnFailure(r)
		p.warnMoney(r)
	}
	p.read = append(p.read, rest)
	p.set.Rules = append(p.set.Rules, r.Rule)
	p.report.rule = ""
}

// Memory that parsing needs. TestHostileDocuments verifies it with documents of many
// kinds.
const (
	MaxMemory = 20 * MaxDocument // bytes for one document, whatever it contains
	maxAtOnce = 3 * MaxMemory    // for all that are parsed in this process

	perByte     = 800      // of a short document that is nothing but values
	perDocument = 40 << 20 // of one that is longer: a piece of it that is read at once
	perByteMore = 10       // and what is kept of all of it
)

// parsing bounds what is parsed at the same time. Further documents wait.
var parsing = budget.New(maxAtOnce)

// makeRoom waits until a document of so many bytes can be parsed, until done is called.
func makeRoom(size int) (done func()) {
	n := int64(min(size, MaxDocument))
	n = min(n*perByte, perDocument) + n*perByteMore
	_ = parsing.Take(context.Background(), n) // cannot fail: that context does not end
	return func() { parsing.Give(n) }
}

// pendingList is exempt or block, with what stands where.
type pendingList struct {
	name  string
	at    document.Position
	ips   []placed[netip.Prefix]
	users []placed[string]
	keys  []placed[string]
}

type placed[T any] struct {
	value T
	at    document.Position
}

// list reads exempt or block. Nothing at all is an empty list.
func (p *parser) list(name string, e *document.Element) (l List) {
	pl := &pendingList{name: name}
	p.lists = append(p.lists, pl)
	if e == nil || e.Kind == document.Nothing {
		return l
	}
	pl.at = e.Position
	f := p.fields(e, name, listFields)
	for _, v := range p.listValues(f["ip"], name+": ip") {
		if network, ok := p.network(v, name+": ip"); ok {
			pl.ips = append(pl.ips, placed[netip.Prefix]{network, v.Position})
			l.IPs = append(l.IPs, network)
		}
	}
	pl.users, l.Users = placedTexts(p.listValues(f["user"], name+": user"))
	if e := f["api_key"]; e != nil {
		p.hide(e)
	}
	pl.keys, l.APIKeys = placedTexts(p.listValues(f["api_key"], name+": api_key"))
	return l
}

// placedTexts are values with and without their places.
func placedTexts(values []*document.Element) (at []placed[string], texts []string) {
	if len(values) == 0 {
		return nil, nil
	}
	at, texts = make([]placed[string], len(values)), make([]string, len(values))
	for i, v := range values {
		at[i], texts[i] = placed[string]{v.Text, v.Position}, v.Text
	}
	return at, texts
}

// listValues is texts for a list that may be empty.
func (p *parser) listValues(e *document.Element, field string) []*document.Element {
	if e == nil || e.Kind == document.Nothing || e.Kind == document.List && len(e.Items) == 0 {
		return nil
	}
	return p.texts(e, field, maxText)
}

// hide keeps API keys out of excerpts.
func (p *parser) hide(e *document.Element) {
	for _, v := range append(e.Items, e) {
		if !isHash(v.Text) {
			p.quoter.Hide(v.Position, v.Text)
		}
	}
}

// network reads an address or a network.
func (p *parser) network(e *document.Element, field string) (netip.Prefix, bool) {
	if ip, err := netip.ParseAddr(e.Text); err == nil {
		if ip.Zone() != "" {
			p.errorf("E018", e.Position, field, "%s has a zone, which is valid on one machine only; write %s", document.Quote(e.Text), ip.WithZone(""))
			return netip.Prefix{}, false
		}
		ip = ip.Unmap()
		return netip.PrefixFrom(ip, ip.BitLen()), true
	}
	network, err := netip.ParsePrefix(e.Text)
	if err != nil {
		p.errorf("E018", e.Position, field, "%s is not an address or a network; write for example 192.0.2.7 or 10.0.0.0/8", document.Quote(e.Text))
		return netip.Prefix{}, false
	}
	if masked := network.Masked(); masked != network {
		p.errorf("E018", e.Position, field, "%s has host bits set beyond its /%d; write %s for the network, or %s for one address", network, network.Bits(), masked, network.Addr())
		return netip.Prefix{}, false
	}
	return canonicalNetwork(network), true
}
