package rulefile

import (
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/weirhq/weir/internal/document"
)

// maxFlow is the length up to which a list of scalars is written in brackets.
const maxFlow = 60

// write writes a tree as people would, indented by two.
func write(e *document.Element) ([]byte, error) {
	if e.Kind == document.Mapping && len(e.Members) == 0 {
		return []byte("{}\n"), nil
	}
	return yaml.Dump(toYAML(e), yaml.WithIndent(2), yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1), yaml.WithQuotePreference(yaml.QuoteDouble))
}

func toYAML(e *document.Element) *yaml.Node {
	switch e.Kind {
	case document.Mapping:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, m := range e.Members {
			n.Content = append(n.Content, toYAML(m.Name), toYAML(m.Value))
		}
		return n
	case document.List:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if isShort(e) {
			n.Style = yaml.FlowStyle
		}
		for _, item := range e.Items {
			n.Content = append(n.Content, toYAML(item))
		}
		return n
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: tags[e.Kind], Value: e.Text}
	if e.Kind == document.Text && strings.ContainsFunc(e.Text, func(c rune) bool { return c != ' ' && !unicode.IsPrint(c) }) {
		n.Style = yaml.DoubleQuotedStyle
		if isParagraph(e.Text) {
			n.Style = yaml.LiteralStyle
		}
	}
	return n
}

// isParagraph is whether a text of several lines can do without quotes and escapes.
func isParagraph(text string) bool {
	if text[0] == ' ' || text[0] == '\n' || text[len(text)-1] != '\n' || strings.HasSuffix(text, "\n\n") {
		return false
	}
	return !strings.ContainsFunc(text, func(c rune) bool { return c != '\n' && !unicode.IsPrint(c) })
}

var tags = map[document.Kind]string{document.Nothing: "!!null", document.Text: "!!str", document.Integer: "!!int", document.Truth: "!!bool"}

// isShort is whether a list reads well in one line.
func isShort(e *document.Element) bool {
	length := 0
	for _, item := range e.Items {
		if !item.IsScalar() {
			return false
		}
		length += len(item.Text) + 2
	}
	return length <= maxFlow
}
