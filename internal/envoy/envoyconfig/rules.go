package envoyconfig

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/rule"
)

// Rules turns the configuration into rules that count by attributes, one for each key
// of an entry, as faithfully as rules can say it. The notes say what they cannot, and
// what was made of it. What is returned compiles.
func (c *Config) Rules() (*rule.Set, []string) {
	x := &exporter{ids: map[string]int{}, several: len(c.domains) > 1}
	if x.several {
		x.note("There are several domains. Requests must send theirs in the attribute domain.")
	}
	for _, name := range c.Domains() {
		x.domain = name
		x.level(&c.domains[name].root, nil)
	}
	if len(x.set.Rules) > 0 {
		x.note("A rule applies to every request that has its attributes, also to one that has more of them; a descriptor only to a list of entries that ends with it.")
	}
	return &x.set, x.notes
}

// exporter makes rules of a tree.
type exporter struct {
	set     rule.Set
	notes   []string
	ids     map[string]int // of each, how often it was wanted
	domain  string
	several bool
}

func (x *exporter) note(format string, args ...any) {
	x.notes = append(x.notes, fmt.Sprintf(format, args...))
}

// level makes rules of what is below a path.
func (x *exporter) level(l *level, path []*branch) {
	for _, b := range l.all {
		at := append(slices.Clone(path), b)
		switch {
		case b.parts != nil:
			x.note("%s: patterns are not supported in attributes, so it is left out with everything below it.", x.where(at))
			continue
		case slices.ContainsFunc(path, func(above *branch) bool { return above.key == b.key }):
			x.note("%s: the key %s is given twice, but an attribute has one value. It is left out with everything below it.", x.where(at), b.key)
			continue
		case x.several && b.key == "domain":
			x.note("%s: the attribute domain is reserved. It is left out with everything below it.", x.where(at))
			continue
		case b.value == "":
			x.rules(at, x.siblings(l, at))
		case l.exact[b.key] == nil || !x.isOverride(l.exact[b.key], at):
			x.apart(l, at)
		}
		x.level(&b.below, at)
	}
}

// apart makes rules of a descriptor with a value that cannot be an override of the one
// without.
func (x *exporter) apart(l *level, at []*branch) {
	b := at[len(at)-1]
	denies := b.node != nil && b.node.denies
	if all := l.exact[b.key]; all != nil && all.isLimited() && !denies {
		if !b.isLimited() {
			x.note("%s: it has no limit, but the rule for every %s cannot exclude it, so that rule applies.", x.where(at), b.key)
			return
		}
		x.note("%s: the rule for every %s also applies to it, so the lower of the two limits has effect.", x.where(at), b.key)
	}
	x.rules(at, nil)
}

func (b *branch) isLimited() bool {
	return b.node != nil && !b.node.Unlimited && !b.node.denies
}

// siblings are the overrides of a descriptor without a value: those that have one.
func (x *exporter) siblings(l *level, at []*branch) map[string]rule.Quota {
	all := at[len(at)-1]
	overrides := map[string]rule.Quota{}
	for _, b := range l.all {
		one := append(slices.Clone(at[:len(at)-1]), b)
		if b.key != all.key || b.value == "" || b.parts != nil || !x.isOverride(all, one) {
			continue
		}
		quota := rule.Quota{Unlimited: true}
		if b.isLimited() {
			quota = quotaOf(b.node.Limits)
		}
		overrides[identity(one)] = quota
	}
	return overrides
}

// isOverride is whether a descriptor can be an override of the one without a value: it
// differs in its quota alone, and who it is about can be written down.
func (x *exporter) isOverride(all *branch, at []*branch) bool {
	one := at[len(at)-1].node
	if !all.isLimited() || slices.ContainsFunc(at, func(b *branch) bool { return b.value == "" }) {
		return false
	}
	if len(groups(all.node.Limits)) != 1 {
		return false
	}
	if one == nil || one.Unlimited {
		return true
	}
	return !one.denies && len(groups(one.Limits)) == 1 &&
		one.Limits[0].Algorithm == all.node.Limits[0].Algorithm &&
		one.Shadow == all.node.Shadow && one.Always == all.node.Always && one.Quota == all.node.Quota && one.Failure == all.node.Failure
}

// rules makes the rules of one descriptor: one for each algorithm.
func (x *exporter) rules(at []*branch, overrides map[string]rule.Quota) {
	b := at[len(at)-1]
	switch {
	case b.node == nil || b.node.Unlimited:
		return
	case b.node.denies:
		x.note("%s: it denies everything, but a rule must allow something. It is left out; block such requests instead.", x.where(at))
		return
	}
	x.remark(at, b.node)
	for _, limits := range groups(b.node.Limits) {
		r := rule.Rule{
			ID: x.id(at), Description: x.where(at), Match: x.match(at), Algorithm: limits[0].Algorithm, Quota: quotaOf(limits),
			OnFailure: b.node.Failure.Policy(), Fallback: b.node.Failure.fallback(), Overrides: overrides,
		}
		for _, above := range at {
			r.Key = append(r.Key, rule.Source{Kind: rule.Attribute, Name: above.key})
		}
		if b.node.Shadow || b.node.Quota {
			r.Mode = rule.Shadow
		}
		if err := rule.Validate("", &rule.Set{Rules: []rule.Rule{r}}).Err(); err != nil {
			x.note("%s: it cannot be converted and is left out: %v", x.where(at), err)
			continue
		}
		x.set.Rules = append(x.set.Rules, r)
	}
}

// remark notes what is lost of a descriptor that becomes a rule.
func (x *exporter) remark(at []*branch, n *Node) {
	if n.Quota {
		x.note("%s: rules have no quota_mode. It becomes a shadow rule, which never denies.", x.where(at))
	}
	if n.Always {
		x.note("%s: rules have no charge: always, so a cost that does not fit is denied. A caller can send it with each request.", x.where(at))
	}
	if n.Hold != nil {
		x.note("%s: rules have no hold by entries. A caller reserves before a request, and settles after it.", x.where(at))
	}
	if len(n.Replaces) > 0 {
		x.note("%s: it replaces %s, which rules do not support, so both apply.", x.where(at), strings.Join(n.Replaces, ", "))
	}
	if n.Failure.IsError() {
		x.note("%s: on_failure: error becomes closed, because there is no Envoy to decide.", x.where(at))
	}
}

// groups are the limits that one rule can have together.
func groups(limits []Limit) [][]Limit {
	var out [][]Limit
	for _, l := range limits {
		i := slices.IndexFunc(out, func(g []Limit) bool {
			return g[0].Algorithm == l.Algorithm && g[0].Burst == l.Burst && g[0].Zone == l.Zone && g[0].Starts == l.Starts
		})
		if i < 0 {
			out = append(out, []Limit{l})
			continue
		}
		out[i] = append(out[i], l)
	}
	return out
}

func quotaOf(limits []Limit) rule.Quota {
	q := rule.Quota{Burst: limits[0].Burst, Starts: limits[0].Starts}
	if zone := limits[0].Zone; zone != nil {
		q.Zone = zone.String()
	}
	for _, l := range limits {
		q.Rates = append(q.Rates, rule.Rate{N: int64(l.N), Period: l.Period})
	}
	return q
}

// match asks for the values that the descriptors have.
func (x *exporter) match(at []*branch) rule.Match {
	attributes := map[string][]string{}
	if x.several {
		attributes["domain"] = []string{x.domain}
	}
	for _, b := range at {
		if b.value != "" {
			attributes[b.key] = []string{b.value}
		}
	}
	return rule.Match{Attributes: attributes}
}

// identity returns the client in the notation of overrides.
func identity(at []*branch) string {
	var parts []string
	for _, b := range at {
		value := strings.NewReplacer(`\`, `\\`, `|`, `\|`).Replace(b.value)
		parts = append(parts, rule.Source{Kind: rule.Attribute, Name: b.key}.String()+":"+value)
	}
	return strings.Join(parts, "|")
}

func (x *exporter) where(at []*branch) string {
	text := x.domain
	for _, b := range at {
		text += "." + b.composite
	}
	return text
}

// id is a name that no other rule has.
func (x *exporter) id(at []*branch) string {
	const good = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	id := strings.Map(func(c rune) rune {
		if strings.ContainsRune(good, c) {
			return c
		}
		return '-'
	}, x.where(at))
	id = id[:min(len(id), rule.MaxIDLen-8)]
	unique := id
	for x.ids[unique] > 0 {
		x.ids[id]++
		unique = id + "-" + strconv.Itoa(x.ids[id])
	}
	x.ids[unique] = 1
	return unique
}
