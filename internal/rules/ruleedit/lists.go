package ruleedit

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// Listing is one client for a list of a document.
type Listing struct {
	List   string // exempt or block
	Kind   string // ip, user or api_key
	Client string
	Off    bool // the client is taken off the list
}

// List puts a client on a list of a document, or takes it off. Everything else is as with
// Put; the comment behind an entry goes with it.
func (d *Document) List(l Listing) (next *Document, kept bool, err error) {
	// Read as it would be in a document, so that it is refused with the same words.
	one, problems := rule.Parse("", named(l.List, named(l.Kind, document.NewList([]string{l.Client}))).JSON())
	if err := problems.Err(); err != nil {
		return nil, false, err
	}
	want := *d.Set
	was, its := listOf(&want, l.List), listOf(one, l.List)
	now := rule.List{
		IPs:     listed(was.IPs, its.IPs, l.Off),
		Users:   listed(was.Users, its.Users, l.Off),
		APIKeys: listed(was.APIKeys, its.APIKeys, l.Off),
	}
	if len(now.IPs) == len(was.IPs) && len(now.Users) == len(was.Users) && len(now.APIKeys) == len(was.APIKeys) {
		return d, true, nil
	}
	*was = now
	whole := document.Read("", string(rule.ToJSON(&rule.Set{Exempt: want.Exempt, Block: want.Block})), func(document.Fault) {})
	return d.edit(&want,
		func(f form) (change, bool) { return f.list(&l) },
		func(f form) (change, bool) { return f.field(l.List, whole.Get(l.List)) })
}

// named is a mapping of one value.
func named(name string, value *document.Element) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	e.Add(name, value)
	return e
}

func listOf(set *rule.Set, name string) *rule.List {
	if name == "exempt" {
		return &set.Exempt
	}
	return &set.Block
}

// listed is a list with some more, or without them. An empty one is nil, as in what was
// parsed.
func listed[T comparable](all, some []T, off bool) (now []T) {
	for _, one := range all {
		if !off || !slices.Contains(some, one) {
			now = append(now, one)
		}
	}
	for _, one := range some {
		if !off && !slices.Contains(now, one) {
			now = append(now, one)
		}
	}
	return now
}

// list changes one entry where it stands: on a line of its own, or in brackets on one
// line.
func (f *yamlForm) list(l *Listing) (change, bool) {
	if f.root == nil {
		return change{}, false
	}
	outer := f.root.Get(l.List)
	if outer == nil {
		return change{}, false
	}
	inner := outer.Get(l.Kind)
	if inner == nil || len(inner.Items) == 0 {
		return change{}, false
	}
	i := slices.IndexFunc(inner.Items, func(e *document.Element) bool { return sameClient(l.Kind, e.Text, l.Client) })
	switch last := inner.Items[len(inner.Items)-1]; {
	case inner.Flow:
		return f.listFlow(inner.Items, i, l)
	case !l.Off:
		item := strings.Repeat(" ", inner.Column-1) + "- " + l.quoted() + f.eol
		return f.spliced(last.Line, last.Line, []string{item}, true)
	case i < 0 || len(inner.Items) == 1:
		return change{}, false
	}
	line := inner.Items[i].Line
	return f.spliced(line-1, line, nil, true)
}

// quoted is the client as YAML and JSON write it, wherever it stands.
func (l *Listing) quoted() string { return string(document.NewText(l.Client).JSON()) }

// listFlow changes an entry of a list in brackets, if all of it is on one line.
func (f *yamlForm) listFlow(items []*document.Element, i int, l *Listing) (change, bool) {
	at := items[0].Line
	if items[len(items)-1].Line != at || l.Off && (i < 0 || len(items) == 1) {
		return change{}, false
	}
	line := f.lines[at-1]
	begin := func(n int) int { return min(items[n].Column-1, len(line)) }
	last := len(items) - 1
	switch {
	case !l.Off:
		end := scalarEnd(line, begin(last))
		line = line[:end] + ", " + l.quoted() + line[end:]
	case i < last:
		line = line[:begin(i)] + line[begin(i+1):]
	default:
		line = line[:scalarEnd(line, begin(i-1))] + line[scalarEnd(line, begin(i)):]
	}
	return f.spliced(at-1, at, []string{line}, true)
}

// scalarEnd is where a value in brackets ends that begins at an offset.
func scalarEnd(line string, begin int) int {
	if begin < len(line) && (line[begin] == '"' || line[begin] == '\'') {
		quote := line[begin]
		for i := begin + 1; i < len(line); i++ {
			switch {
			case quote == '"' && line[i] == '\\':
				i++
			case line[i] == quote:
				return i + 1
			}
		}
	}
	end := strings.IndexAny(line[begin:], ",]")
	if end < 0 {
		return len(line)
	}
	return begin + len(strings.TrimRight(line[begin:begin+end], " \t"))
}

// sameClient is whether two texts name one client.
func sameClient(kind, a, b string) bool {
	if kind != "ip" {
		return a == b
	}
	return network(a) == network(b)
}

func network(text string) netip.Prefix {
	if ip, err := netip.ParseAddr(text); err == nil {
		ip = ip.Unmap()
		return netip.PrefixFrom(ip, ip.BitLen())
	}
	n, _ := netip.ParsePrefix(text)
	return n
}

// field writes a field of the document again, adds it at the end, or removes it if it has
// no value.
func (f *yamlForm) field(name string, value *document.Element) (change, bool) {
	if f.root == nil || f.root.Flow || f.root.Kind != document.Mapping {
		return change{}, false
	}
	from, to := len(f.lines), len(f.lines)
	for i, line := range f.lines {
		if strings.HasPrefix(line, "...") {
			from, to = i, i
			break
		}
	}
	found := false
	for i, m := range f.root.Members {
		if m.Name.Text != name {
			continue
		}
		if i+1 < len(f.root.Members) {
			to = f.root.Members[i+1].Name.Line - 1
		}
		from, found = m.Name.Line-1, true
		to = f.page.end(from, to, 0)
	}
	if value == nil {
		return f.spliced(from, to, nil, !hasRemark(f.lines[from:to]))
	}
	lines, ok := f.render(named(name, value), 0)
	if !ok || !found {
		return f.spliced(from, to, lines, ok)
	}
	lines[0] = f.withRemark(lines[0], f.lines[from])
	return f.spliced(from, to, lines, !hasRemark(f.lines[from+1:to]))
}
