package envoyconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// File is one file of a configuration.
type File struct {
	Name   string // for messages
	Source []byte

	// Root stands for the Source if it is not nil: what came otherwise than in a file, in
	// the form of one. Its elements need no place; problems then say the descriptor.
	Root *document.Element
}

// Read makes a configuration of files, each of which is a domain. They are taken in the
// order of their names.
//
// The problems are everything that is wrong with them, errors and warnings. With errors
// there is no configuration; [rule.Problems.Err] tells.
func Read(files []File, o Options) (*Config, rule.Problems) {
	r := &reader{config: &Config{domains: map[string]*Domain{}, secrets: map[string]bool{}, calendar: o.Calendar}, options: o, first: map[string]string{}}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	var problems rule.Problems
	for _, f := range files {
		problems = append(problems, r.file(f)...)
	}
	if problems.Err() != nil {
		return nil, problems
	}
	r.config.count = r.count
	for _, d := range r.config.domains {
		d.brought = Node{Path: d.Name + " (of the request)", Failure: d.failure}
		d.brought.compileRules()
	}
	return r.config, problems
}

// reader makes one configuration of several files.
type reader struct {
	config  *Config
	options Options
	first   map[string]string // the file of a domain
	count   int               // of descriptors
}

func (r *reader) file(f File) rule.Problems {
	text := string(f.Source)
	p := &parser{report: &report{file: f.Name, quoter: document.NewQuoter(text), faults: map[document.Position]bool{}}, reader: r}
	root := f.Root
	if root == nil {
		root = document.ReadAnchored(f.Name, text, p.fault)
	}
	if root != nil {
		p.domain(root)
	}
	return p.done()
}

// parser reads one file.
type parser struct {
	*report
	*reader
	domainIn *Domain
	keys     []string // of the descriptor that is read and those above it
}

var (
	domainFields     = []string{"domain", "descriptors", "on_failure"}
	descriptorFields = []string{
		"key", "value", "rate_limit", "rate_limits", "descriptors", "shadow_mode", "quota_mode",
		"detailed_metric", "value_to_metric", "share_threshold", "metadata", "on_failure", "charge",
		"hold", "reserve", "hold_ttl", "on_expiry",
	}
	limitFields    = []string{"name", "unit", "requests_per_unit", "unlimited", "replaces", "algorithm", "burst", "zone", "starts"}
	replacesFields = []string{"name"}

	// ownFields are those that envoyproxy/ratelimit does not know.
	ownFields      = []string{"on_failure", "rate_limits", "charge", "algorithm", "burst", ownPeriod, "zone", "starts", "hold", "reserve", "hold_ttl", "on_expiry"}
	fallbackFields = []string{"local", "then"}
)

// ownPeriod is a unit that has no name, such as 10s.
const ownPeriod = "unit (a period)"

func (p *parser) domain(root *document.Element) {
	f := p.fields(root, "the file", domainFields)
	if f == nil {
		return
	}
	name, ok := p.text(f["domain"], "domain")
	if !ok {
		return
	}
	if name == "" {
		p.errorf(f.place("domain", root), "domain: required; write the domain that Envoy's rate limit filter sends")
		return
	}
	p.where = where{path: name}
	d := p.config.domains[name]
	switch {
	case d == nil:
		d = &Domain{Name: name, config: p.config}
		p.config.domains[name] = d
		p.first[name] = p.report.file
	case !p.options.MergeDomains:
		p.errorf(f["domain"].Position, "domain: %s is already in %s; merge the two, or set --envoy-merge-domains", document.Quote(name), p.first[name])
		return
	}
	d.failure = p.failure(f["on_failure"], d.failure)
	p.domainIn = d
	p.descriptors(f["descriptors"], &d.root, name, d.failure)
}

// descriptors reads what may come next. The path says where that is.
func (p *parser) descriptors(e *document.Element, l *level, path string, failure OnFailure) {
	if e == nil {
		return
	}
	if e.Kind != document.List {
		p.errorf(e.Position, "descriptors: this is %s; write a list, with a dash before each descriptor", e.Describe())
		return
	}
	first := map[string]document.Position{}
	for i, item := range e.Items {
		p.where = where{path, i + 1}
		p.count++
		if p.count == MaxDescriptors+1 {
			p.errorf(item.Position, "descriptors: there are more than the maximum of %d; match several values with one pattern", MaxDescriptors)
		}
		if p.count > MaxDescriptors {
			return
		}
		p.descriptor(item, l, path, failure, first)
	}
}

func (p *parser) descriptor(e *document.Element, l *level, path string, failure OnFailure, first map[string]document.Position) {
	f := p.fields(e, "a descriptor", descriptorFields)
	if f == nil {
		return
	}
	b, ok := p.branch(e, f)
	if !ok {
		return
	}
	if at, twice := first[b.composite]; twice {
		line := ""
		if at.Line > 0 {
			line = fmt.Sprintf(", first in line %d", at.Line)
		}
		p.errorf(e.Position, "descriptors: %s is given twice%s; remove one", document.Quote(b.composite), line)
		return
	}
	if l.exact[b.composite] != nil {
		p.errorf(e.Position, "descriptors: %s is already in another file of this domain; remove one", document.Quote(b.composite))
		return
	}
	first[b.composite] = e.Position
	failure = p.failure(f["on_failure"], failure)
	path = document.Clip(path+"."+b.composite, maxPath)
	p.where = where{path: path}
	shadow, quota, always := p.truth(f["shadow_mode"], "shadow_mode"), p.truth(f["quota_mode"], "quota_mode"), p.always(f["charge"])
	metadata := p.metadata(f["metadata"])
	p.keys = append(p.keys, b.key)
	defer func() { p.keys = p.keys[:len(p.keys)-1] }()
	if b.node = p.node(f, path, failure); b.node != nil {
		b.node.Shadow, b.node.Quota, b.node.Always, b.node.Metadata = shadow, quota, always, metadata
	}
	for i, field := range []string{"shadow_mode", "quota_mode", "charge", "hold"} {
		if b.node == nil && [...]bool{shadow, quota, always, f["hold"] != nil}[i] {
			p.warnf(f[field].Position, "%s: has no effect, because the descriptor has no rate_limit; nested descriptors do not inherit it", field)
		}
	}
	p.truth(f["detailed_metric"], "detailed_metric")
	p.truth(f["value_to_metric"], "value_to_metric")
	l.addBranch(b)
	p.config.secrets[b.key] = soundsSecret(b.key)
	p.descriptors(f["descriptors"], &b.below, path, failure)
}

// branch reads what a descriptor is found by.
func (p *parser) branch(e *document.Element, f fields) (*branch, bool) {
	b := &branch{}
	var ok, good bool
	b.key, ok = p.text(f["key"], "key")
	b.value, good = p.text(f["value"], "value")
	if !ok || !good {
		return nil, false
	}
	if b.key == "" {
		p.errorf(f.place("key", e), "key: required; write the key of the entry that Envoy sends, such as remote_address")
		return nil, false
	}
	b.composite = b.key
	if b.value != "" {
		b.composite += "_" + b.value
	}
	if strings.Contains(b.composite, "*") {
		b.parts = strings.Split(b.composite, "*")
	}
	b.shared = p.truth(f["share_threshold"], "share_threshold")
	if b.shared && b.parts == nil {
		p.errorf(f["share_threshold"].Position, "share_threshold: %s has no *, so no values share the limit; write a value such as files*, or remove the field", document.Quote(b.composite))
	}
	return b, true
}

func (l *level) addBranch(b *branch) {
	if l.exact == nil {
		l.exact = map[string]*branch{}
	}
	l.exact[b.composite] = b
	if b.parts != nil {
		l.wild = append(l.wild, b)
	}
	l.all = append(l.all, b)
}

// always reads whether hits are charged even if they do not fit.
func (p *parser) always(e *document.Element) bool {
	text, ok := p.text(e, "charge")
	if ok && text != "" && text != "always" {
		p.errorf(e.Position, "charge: %q is unknown; write always, or remove the field", text)
	}
	return text == "always"
}

func (p *parser) metadata(e *document.Element) map[string]any {
	if e == nil {
		return nil
	}
	if e.Kind != document.Mapping {
		p.errorf(e.Position, "metadata: this is %s; write names and values", e.Describe())
		return nil
	}
	return plain(e).(map[string]any)
}

// node reads the limits of a descriptor. It is nil if there are none, which is how to
// say that nothing is limited here.
func (p *parser) node(f fields, path string, failure OnFailure) *Node {
	one, several := f["rate_limit"], f["rate_limits"]
	var limits []*document.Element
	switch {
	case one != nil && several != nil:
		p.errorf(several.Position, "rate_limits: cannot be combined with rate_limit; put it into the list")
		return nil
	case one != nil:
		limits = []*document.Element{one}
	case several == nil:
		return nil
	case several.Kind != document.List || len(several.Items) == 0:
		is := "an empty list"
		if several.Kind != document.List {
			is = several.Describe()
		}
		p.errorf(several.Position, "rate_limits: this is %s; write a list of limits, or rate_limit for one", is)
		return nil
	case len(several.Items) > MaxRateLimits:
		p.errorf(several.Items[MaxRateLimits].Position, "rate_limits: %d limits exceed the maximum of %d; keep the strictest ones", len(several.Items), MaxRateLimits)
		return nil
	default:
		limits = several.Items
	}
	n := &Node{Path: path, Failure: failure}
	before := p.errors
	n.Hold = p.hold(f)
	for _, e := range limits {
		p.limit(e, n, several != nil)
	}
	if p.errors > before {
		return n // whatever it is, it is not used
	}
	if n.Unlimited && f["hold"] != nil {
		p.warnf(f["hold"].Position, "hold: has no effect when unlimited is true; remove one of them")
	}
	n.compileRules()
	if err := n.compileLimits(); err != nil {
		p.errorf(limits[0].Position, "rate_limit: %s", reason(err))
		return n
	}
	p.checkHold(f, n)
	p.domainIn.addHold(n.Hold)
	return n
}
