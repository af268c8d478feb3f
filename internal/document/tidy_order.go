package document

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// arrange returns the lines of a value, from first up to end, in order.
func (t *tidier) arrange(n *yaml.Node, o *Order, first, end int) []*tidyLine {
	if n.Style&yaml.FlowStyle != 0 || len(n.Content) == 0 {
		return t.lines[first:end]
	}
	switch n.Kind {
	case yaml.MappingNode:
		return t.arrangeFields(n, o, first, end)
	case yaml.SequenceNode:
		out := slices.Clone(t.lines[first : n.Content[0].Line-1])
		for i, item := range n.Content {
			stop := end
			if i+1 < len(n.Content) {
				stop = n.Content[i+1].Line - 1
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

func (t *tidier) arrangeFields(n *yaml.Node, o *Order, first, end int) []*tidyLine {
	var blocks []block
	begin := n.Content[0].Line - 1
	head, lead := t.lines[first:begin], []*tidyLine(nil)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		stop := end
		if i+2 < len(n.Content) {
			stop = n.Content[i+2].Line - 1
		}
		own := stop
		for own > key.Line && t.lines[own-1].remarks {
			own--
		}
		blocks = append(blocks, block{o.rank(key.Value), lead, t.arrange(value, o.below(key.Value), key.Line-1, own)})
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
