package ruleedit

import (
	"slices"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// documentOrder is the order of fields in a document. At the top they stay as they are,
// with the comments between them.
var documentOrder = func() *fieldOrder {
	levels := &fieldOrder{each: &fieldOrder{fields: rule.FieldNames("quota")}}
	quotas := &fieldOrder{each: &fieldOrder{fields: rule.FieldNames("quota"), in: map[string]*fieldOrder{"levels": levels}}}
	weights := &fieldOrder{fields: rule.FieldNames("weights")}
	tokens := &fieldOrder{fields: rule.FieldNames("tokens"), in: map[string]*fieldOrder{"weights": weights, "models": {each: weights}}}
	one := &fieldOrder{fields: rule.FieldNames("rule"), in: map[string]*fieldOrder{
		"match": {fields: rule.FieldNames("match")}, "shares": {fields: rule.FieldNames("shares")}, "cost": {fields: rule.FieldNames("cost")}, "count": {fields: rule.FieldNames("count")}, "tokens": tokens, "penalty": {fields: rule.FieldNames("penalty")}, "wait": {fields: rule.FieldNames("wait")}, "on_failure": {fields: rule.FieldNames("on_failure")}, "deny": {fields: rule.FieldNames("deny")}, "levels": levels, "tiers": quotas, "overrides": quotas,
	}}
	list := &fieldOrder{fields: rule.FieldNames("list")}
	return &fieldOrder{in: map[string]*fieldOrder{"rules": {each: one}, "exempt": list, "block": list}}
}()

// ruleOrder is the order of fields in a rule.
var ruleOrder = documentOrder.in["rules"].each

// fieldOrder is the order of names in a mapping, and in what is below it.
type fieldOrder struct {
	fields []string               // names that are not among them go last; none keeps all as it is
	in     map[string]*fieldOrder // of values, by name
	each   *fieldOrder            // of all other values, and of the items of a list
}

// below is the order of a value by its name, or of an item.
func (o *fieldOrder) below(name string) *fieldOrder {
	switch {
	case o == nil:
		return nil
	case o.in[name] != nil:
		return o.in[name]
	}
	return o.each
}

// rank is where a name belongs.
func (o *fieldOrder) rank(name string) int {
	if o == nil {
		return 0
	}
	if i := slices.Index(o.fields, name); i >= 0 {
		return i
	}
	return len(o.fields)
}

// names are all that two mappings have, in the order.
func (o *fieldOrder) names(mappings ...*document.Element) []string {
	var all []string
	seen := map[string]bool{}
	for _, e := range mappings {
		for _, m := range e.Members {
			if !seen[m.Name.Text] {
				seen[m.Name.Text] = true
				all = append(all, m.Name.Text)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return o.rank(a) - o.rank(b) })
	return all
}

// sort brings a tree into the order.
func (o *fieldOrder) sort(e *document.Element) {
	slices.SortStableFunc(e.Members, func(a, b document.Member) int { return o.rank(a.Name.Text) - o.rank(b.Name.Text) })
	for _, m := range e.Members {
		o.below(m.Name.Text).sort(m.Value)
	}
	for _, item := range e.Items {
		o.below("").sort(item)
	}
}

// arrange returns the lines of a value, from first up to end, in order.
func (t *tidier) arrange(e *document.Element, o *fieldOrder, first, end int) []*tidyLine {
	switch {
	case e.Flow:
	case len(e.Members) > 0:
		return t.arrangeFields(e.Members, o, first, end)
	case len(e.Items) > 0:
		out := slices.Clone(t.lines[first : e.Items[0].Line-1])
		for i, item := range e.Items {
			stop := end
			if i+1 < len(e.Items) {
				stop = e.Items[i+1].Line - 1
			}
			out = append(out, t.arrange(item, o.below(""), item.Line-1, stop)...)
		}
		return out
	}
	return t.lines[first:end]
}

// block is a field: the lines before it that belong to it, and its own.
type block struct {
	rank  int
	lead  []*tidyLine
	lines []*tidyLine
}

func (t *tidier) arrangeFields(members []document.Member, o *fieldOrder, first, end int) []*tidyLine {
	var blocks []block
	begin := members[0].Name.Line - 1
	head, lead := t.lines[first:begin], []*tidyLine(nil)
	for i, m := range members {
		name := m.Name.Text
		stop := end
		if i+1 < len(members) {
			stop = members[i+1].Name.Line - 1
		}
		own := stop
		for own > m.Name.Line && t.lines[own-1].remarks {
			own--
		}
		blocks = append(blocks, block{o.rank(name), lead, t.arrange(m.Value, o.below(name), m.Name.Line-1, own)})
		lead = t.lines[own:stop]
	}
	if movable(blocks) {
		slices.SortStableFunc(blocks, func(a, b block) int { return a.rank - b.rank })
		begins := t.lines[begin]
		if top := blocks[0].lines[0]; top != begins {
			top.indent, top.dashes, begins.indent, begins.dashes = begins.indent, begins.dashes, top.indent, 0
			blocks[0].lead = nil
		}
	}
	out := slices.Clone(head)
	for _, b := range blocks {
		out = append(append(out, b.lead...), b.lines...)
	}
	return append(out, lead...)
}

// movable is whether every comment belongs to one field: none has an empty line
// after it, and none would come between a dash and the first field.
func movable(blocks []block) bool {
	top := slices.MinFunc(blocks, func(a, b block) int { return a.rank - b.rank })
	for _, line := range top.lead {
		if !line.isBlank() {
			return false
		}
	}
	for _, b := range blocks {
		comment := false
		for _, line := range b.lead {
			if line.isBlank() && comment {
				return false
			}
			comment = comment || !line.isBlank()
		}
	}
	return true
}
