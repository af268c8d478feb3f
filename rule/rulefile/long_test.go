package rulefile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/testkit"
)

// inPieces reads a source in pieces of so many marks.
func inPieces(source string, marks int) (*document.Element, []document.Fault) {
	var faults []document.Fault
	document.RegisterYAML(func(r *document.Reader) *document.Element { return readPieces(r, marks) }, write)
	defer document.RegisterYAML(read, write)
	return document.Read("x.yaml", source, func(f document.Fault) { faults = append(faults, f) }), faults
}

// What is read in pieces is what is read at once, to the last place.
func TestPiecesAreTheWhole(t *testing.T) {
	for _, source := range []string{
		"a: 1\nb: [x, y]\nc:\n  d: |\n    text\n\n     more\n  e: 'x'\nf:\n- 1\n- g: 2\n  h: 3\n- - 4\n  - 5\n",
		"# before\n---\n# after\na:\n  # in it\n  b: 1 # beside\n\n  c: >-\n   folded\n\n   text\n# last\n...\n# behind\n",
		"- a\n-\n  b: c\n- # comment\n  d:\n    e: f\n-   g: h\n    i: j\n- [k,\n  l]\n",
		"rules: [\n  {a: b},\n  {c: d},\n]\ne: f\n", "rules: [\n{a: b},\n{c: d}\n]\ne: f\n", "a: {\n  b: c,\n}\n",
		"a: plain\n  goes on\n  and on\nb: \"quoted\n  goes on\"\nc: d\n", "a:\n  text on\n  lines\nb: c\n",
		"  a: 1\n  b:\n    - 2\n", "a:\r\n  - b\r\n  - c\r\nd: e\r\n", "ü:\n  é: 防\n  ë:\n  - à\n", "\"a b\": c\n'd': e\nf g: h\n",
		"a:\n\n\n  - b\n\n  - c\n", "a: |2\n    x\n   y\nb: c\n", "a: |\n  # no comment\n  x\nb: c", "a:\n  - |\n    b\n  - c\n", "a:\n  -\n  - b\n",
		"text\n", "text\nmore\n", "- - - a\n    - b\n  - - c\n", "? a\n: b\n? c\n: d\n", "a: b\n<<: c\nd: &x e\n", "", "#\n#\n", "a:\nb:\nc:\n",
	} {
		whole, faults := inPieces(source, 1<<20)
		for _, marks := range []int{0, 1, 2, 3, 5, 8} {
			got, more := inPieces(source, marks)
			if show(got) != show(whole) || !slices.Equal(more, faults) {
				t.Errorf("%q in pieces of %d marks:\n got %s %v\nwant %s %v", source, marks, show(got), more, show(whole), faults)
			}
		}
	}
}

// The same of trees that were drawn, and of their lines out of order: there a piece may
// be no YAML, but it is never something else than what stands there.
func TestPiecesOfDrawnDocuments(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b c", "ü", "user:a", "- x", "\"q\"", "#h", "x: y", "[b]", "long\ntext\n", "null", "1"})
	var tree func(depth int) *rapid.Generator[*document.Element]
	tree = func(depth int) *rapid.Generator[*document.Element] {
		return rapid.Custom(func(t *rapid.T) *document.Element {
			e := &document.Element{Kind: rapid.SampledFrom([]document.Kind{document.Text, document.List, document.Mapping}).Draw(t, "kind")}
			switch {
			case depth == 0 || e.Kind == document.Text:
				return document.NewText(names.Draw(t, "text"))
			case e.Kind == document.List:
				e.Items = rapid.SliceOfN(tree(depth-1), 1, 4).Draw(t, "items")
			default:
				for _, name := range rapid.SliceOfNDistinct(names, 1, 4, rapid.ID).Draw(t, "names") {
					e.Add(name, tree(depth-1).Draw(t, "value"))
				}
			}
			return e
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		text, err := tree(4).Draw(t, "tree").YAML()
		if err != nil {
			t.Fatal(err)
		}
		source := string(text)
		mixed := rapid.Bool().Draw(t, "mixed")
		if mixed {
			lines := strings.SplitAfter(source, "\n")
			source = strings.Join(rapid.Permutation(lines).Draw(t, "lines"), "")
		}
		whole, faults := inPieces(source, 1<<20)
		got, more := inPieces(source, rapid.IntRange(0, 10).Draw(t, "marks"))
		isSame := show(got) == show(whole) && slices.Equal(more, faults)
		isError := got == nil && len(more) > 0 || len(more) > 0 && len(faults) > 0
		if !isSame && (!mixed || !isError) {
			t.Fatalf("%q:\n got %s %v\nwant %s %v", source, show(got), more, show(whole), faults)
		}
	})
}

// A piece that is no YAML says where, in the lines of the whole.
func TestFaultsInPieces(t *testing.T) {
	for source, want := range map[string]string{
		"a: 1\nb: 2\nc: [3\nd: 4\n":      "{{3 4} 0 invalid YAML: while parsing a flow sequence",
		"a: 1\nb: 2\nc\nd: 4\n":          "{{3 1} 0 invalid YAML: ",
		"a: 1\nb: 2\n- c\n":              "{{3 1} 0 invalid YAML: ",
		"a:\n  b:\n    c: 1\n   d: 2\n":  "{{4 4} 0 invalid YAML: ",
		"- a\n- b\nc: d\n":               "{{3 1} 0 invalid YAML: ",
		"a: 1\nb:\n  - 1\n  - \x01\n":    "{{4 5} 0 invalid YAML: ",
		"a: 1\nb: 2\n\tc: 3\n":           "{{3 1} 0 invalid YAML: ",
		"a: 1\nb: 'x\nc: y'\n":           "{{2 4} 0 invalid YAML: ",
		"a: 1\nb: 2\nc: 3\nb: 4\n":       "{{4 1} 3 this name is in the mapping twice, first in line 2",
		"a: 1\nb:\n- c\n-  - d\n   e\n":  "{{5 4} 0 invalid YAML: ",
		"a: 1\nb: 2\n? c\n: d\n? [e]\n:": "{{5 3} 4 expected a name, but this is a list",
	} {
		if _, faults := inPieces(source, 2); len(faults) != 1 || !strings.HasPrefix(fmt.Sprint(faults[0]), want) {
			t.Errorf("%q: got %v, want %s", source, faults, want)
		}
	}
}

// The items of the list are given one by one, whether it is long or not, in either
// notation, and the rest is in the tree.
func TestReadEach(t *testing.T) {
	for _, n := range []int{0, 1, 3, 20_000} {
		var yaml, json, want []string
		for i := range n {
			yaml = append(yaml, fmt.Sprintf("- {id: %d}\n", i))
			json = append(json, fmt.Sprintf(`{"id":%d}`, i))
			want = append(want, fmt.Sprint(i))
		}
		list := "rules:\n" + strings.Join(yaml, "")
		if n == 0 {
			list = "rules: []\n"
		}
		for name, source := range map[string]string{
			"x.yaml": "a: {rules: [b]}\n" + list + "c: d\n", "x.json": `{"a": {"rules": ["b"]}, "rules" : [` + strings.Join(json, ",") + `], "c": "d"}`,
		} {
			var got []string
			root := document.ReadEach(name, source, func(f document.Fault) { t.Error(f) }, "rules", func(e *document.Element) { got = append(got, e.Get("id").Text) })
			if !slices.Equal(got, want) || string(root.JSON()) != `{"a":{"rules":["b"]},"rules":[],"c":"d"}` {
				t.Errorf("%s with %d: got %d, and %s", name, n, len(got), root.JSON())
			}
		}
	}
	for name, source := range map[string]string{"x.yaml": "rules: {a: b}", "x.json": `{"rules": {"a": "b"}}`} {
		root := document.ReadEach(name, source, func(f document.Fault) { t.Error(f) }, "rules", func(e *document.Element) { t.Errorf("given %s", show(e)) })
		if string(root.JSON()) != `{"rules":{"a":"b"}}` {
			t.Errorf("%s: got %s", name, root.JSON())
		}
	}
}

// Values are bounded before they are made, in either notation.
func TestValuesAreBounded(t *testing.T) {
	for source, want := range map[string]string{
		"{" + strings.Repeat("a,", 40_000) + "}":                              "{1 1} 1 about 40002 values within brackets",
		"a: 1\nb: [" + strings.Repeat("a,", 40_000) + "]\n":                   "{2 1} 1 about 40004 values within brackets",
		"a:\n" + strings.Repeat("- b\n", document.MaxValues):                  "more than 500000 names and values",
		strings.Repeat("#\n", maxMarks+1):                                     "{0 0} 1 the document has about 1048578 lines and values",
		"{\"a\": [" + strings.Repeat("1,", document.MaxValues) + "1]}":        "more than 500000 names and values",
		"{\"rules\": [1, [" + strings.Repeat("1,", document.MaxItem) + "1]]}": "more than 250000 names and values",
		"rules:\n- 1\n-\n" + strings.Repeat("  - b\n", document.MaxItem):      "more than 250000 names and values",
	} {
		if len(source) > 1<<17 && testkit.Race {
			continue
		}
		var faults []document.Fault
		root := document.Read("", source, func(f document.Fault) { faults = append(faults, f) })
		if strings.Contains(want, "250000") {
			faults = nil
			root = document.ReadEach("", source, func(f document.Fault) { faults = append(faults, f) }, "rules", func(*document.Element) {})
		}
		if root != nil || len(faults) != 1 || !strings.Contains(fmt.Sprint(faults[0]), want) {
			t.Errorf("%.20q: got %v, want %s", source, faults, want)
		}
	}
}
