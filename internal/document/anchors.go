package document

import "go.yaml.in/yaml/v4"

// repeat makes once more what an alias stands for. Every value of it is counted before it
// is made, so few lines cannot stand for more than a document may have; and a value that
// contains itself comes to an end.
func (r *reader) repeat(n *yaml.Node, empty Place, line int) *Element {
	at := Place{line + n.Line, n.Column}
	if r.aliases == MaxDepth {
		r.stop(Bounds, at, "more than %d aliases stand within each other; write the value of *%s out", MaxDepth, Clip(n.Value, maxQuoted))
		return &Element{}
	}
	r.aliases++
	defer func() { r.aliases-- }()
	e := r.fromYAML(n.Alias, empty, line)
	e.Place = at
	return e
}

// merge adds the members of other mappings that a mapping does not have itself. Of two that
// are merged, the first wins.
func (r *reader) merge(into *Element, values []*Element) {
	if len(values) == 0 || r.stopped {
		return
	}
	known := make(map[string]bool, len(into.Members))
	for _, m := range into.Members {
		known[m.Name.Text] = true
	}
	for _, value := range values {
		mappings := []*Element{value}
		if value.Kind == List {
			mappings = value.Items
		}
		for _, from := range mappings {
			if from.Kind != Mapping {
				r.fault(Form, from.Place, "<<: this is %s; write an alias of a mapping, as in <<: *name", from.Describe())
				continue
			}
			for _, m := range from.Members {
				if !known[m.Name.Text] {
					known[m.Name.Text] = true
					into.Members = append(into.Members, m)
				}
			}
		}
	}
}
