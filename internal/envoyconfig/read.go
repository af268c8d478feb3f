package envoyconfig

import (
	"cmp"
	"slices"

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
	r := &reader{config: &Config{domains: map[string]*Domain{}, secrets: map[string]bool{}}, options: o, first: map[string]string{}}
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
	p := &parser{report: &report{file: f.Name, quoter: document.NewQuoter(text), faults: map[document.Place]bool{}}, reader: r}
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
}

var (
	domainFields     = []string{"domain", "descriptors", "on_failure"}
	descriptorFields = []string{
		"key", "value", "rate_limit", "rate_limits", "descriptors", "shadow_mode", "quota_mode",
		"detailed_metric", "value_to_metric", "share_threshold", "metadata", "on_failure", "charge",
	}
	limitFields    = []string{"name", "unit", "requests_per_unit", "unlimited", "replaces", "algorithm", "burst"}
	replacesFields = []string{"name"}
)

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
		p.errorf(f["domain"].Place, "domain: %s is already in %s; merge the two, or set --envoy-merge-domains", document.Quote(name), p.first[name])
		return
	}
	d.failure = p.failure(f["on_failure"], d.failure)
	p.descriptors(f["descriptors"], &d.root, name, d.failure)
}
