package rulefile

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/document"
)

// show writes a tree with its places, in one line.
func show(e *document.Element) string {
	if e == nil {
		return "none"
	}
	at := fmt.Sprintf("@%d:%d", e.Line, e.Column)
	switch e.Kind {
	case document.Nothing:
		return "nothing" + at
	case document.List:
		var parts []string
		for _, item := range e.Items {
			parts = append(parts, show(item))
		}
		return "[" + strings.Join(parts, " ") + "]" + at
	case document.Mapping:
		var parts []string
		for _, m := range e.Members {
			parts = append(parts, show(m.Name)+"="+show(m.Value))
		}
		return "{" + strings.Join(parts, " ") + "}" + at
	}
	return fmt.Sprintf("%s%q%s", map[document.Kind]string{document.Text: "", document.Integer: "int", document.Truth: "bool", document.Other: "other"}[e.Kind], e.Text, at)
}

func readAll(name, source string) (*document.Element, []document.Fault) {
	var faults []document.Fault
	e := document.Read(name, source, func(f document.Fault) { faults = append(faults, f) })
	return e, faults
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"", "", "nothing@0:0"},
		{"x.json", " \n", "nothing@0:0"},
		{"", "# a\n", "nothing@0:0"},
		{"", "a: 1\nb: [x, 'y']\n", `{"a"@1:1=int"1"@1:4 "b"@2:1=["x"@2:5 "y"@2:8]@2:4}@1:1`},
		{"", "a:\nb: ~\nc: \"\"\n", `{"a"@1:1=nothing@1:1 "b"@2:1=nothing@2:4 "c"@3:1=""@3:4}@1:1`},
		{"", "- true\n- yes\n- 1.5\n- 010\n- -3\n- 0x1\n- 2001-01-01\n- 1_000", `[bool"true"@1:3 "yes"@2:3 other"1.5"@3:3 other"010"@4:3 int"-3"@5:3 other"0x1"@6:3 other"2001-01-01"@7:3 other"1_000"@8:3]@1:1`},
		{"", "ü: {é: 防}\n", `{"ü"@1:1={"é"@1:5="防"@1:8}@1:4}@1:1`},
		{"", "a: |\n  x\n   y\n", `{"a"@1:1="x\n y\n"@1:4}@1:1`},
		{"", "\xef\xbb\xbfa: b", `{"a"@1:1="b"@1:4}@1:1`},
		{"", "a: b\r\nc: d\r\n", `{"a"@1:1="b"@1:4 "c"@2:1="d"@2:4}@1:1`},
		{"", "---\na: b\n...\n# end\n", `{"a"@2:1="b"@2:4}@2:1`},
		{"", "{ip: [2001:db8::/32], user:a: b}", `{"ip"@1:2=["2001:db8::/32"@1:7]@1:6 "user:a"@1:23="b"@1:31}@1:1`},
		{"", "{\n\t\"a\": [1, -2.5, true, null, \"\\u00e9\\/\\ud83d\\ude00\"],\n\t\"b\":{}}", `{"a"@2:2=[int"1"@2:8 other"-2.5"@2:11 bool"true"@2:17 nothing@2:23 "é/😀"@2:29]@2:7 "b"@3:2={}@3:6}@1:1`},
		{"x.json", `"ü"`, `"ü"@1:1`},
		{"", "{\"a\": 1, # YAML after all\n b: 2,}", `{"a"@1:2=int"1"@1:7 "b"@2:2=int"2"@2:5}@1:1`},
	} {
		e, faults := readAll(c.name, c.source)
		if got := show(e); got != c.want || faults != nil {
			t.Errorf("%q:\n got %s %v\nwant %s", c.source, got, faults, c.want)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name, source string
		why          document.Why
		at           document.Position
		message      string
	}{
		{"", "a: [b", document.Syntax, document.Position{Line: 1, Column: 4}, "a bracket is not closed"},
		{"", "a: 'b\nc: d\n", document.Syntax, document.Position{Line: 1, Column: 4}, "close the quote"},
		{"", "a: [b\nc: d\n", document.Syntax, document.Position{Line: 2, Column: 2}, "begun in line 1"},
		{"", "a: b\n\x00", document.Syntax, document.Position{Line: 2, Column: 1}, "invisible"},
		{"", "a: \xff", document.Syntax, document.Position{Line: 1, Column: 4}, "invalid UTF-8"},
		{"x.json", "{a: 1}", document.Syntax, document.Position{Line: 1, Column: 2}, "invalid JSON"},
		{"x.json", "{\"a\": 1", document.Syntax, document.Position{Line: 1, Column: 7}, "unexpected end"},
		{"x.json", "{} {}", document.Syntax, document.Position{Line: 1, Column: 4}, "after top-level value"},
		{"", strings.Repeat(" ", document.MaxSize+1), document.Bounds, document.Position{}, "the maximum is 4194304"},
		{"", strings.Repeat("[", 20) + strings.Repeat("]", 20), document.Bounds, document.Position{Line: 1, Column: 17}, "more than 16 levels"},
		{"x.json", strings.Repeat("[", 20) + strings.Repeat("]", 20), document.Bounds, document.Position{Line: 1, Column: 17}, "more than 16 levels"},
		{"", strings.Repeat("[", 20000), document.Bounds, document.Position{Line: 1, Column: 10001}, "reduce the nesting"},
		{"", "a: &x b", document.Foreign, document.Position{Line: 1, Column: 4}, "&x is a YAML anchor"},
		{"", "a: !x b", document.Foreign, document.Position{Line: 1, Column: 4}, "!x is a YAML tag"},
		{"", "a: *x", document.Foreign, document.Position{Line: 1, Column: 4}, "needs quotes"},
		{"", "%TAG ! a\n---\n", document.Foreign, document.Position{Line: 1, Column: 1}, "directive"},
		{"", "a: b\n--- \nc: d", document.Foreign, document.Position{Line: 2, Column: 1}, "a second YAML document"},
		{"", "a: b\n...\nc: d", document.Foreign, document.Position{Line: 3, Column: 1}, "a second YAML document"},
		{"", "  a: b\nc: d\n", document.Syntax, document.Position{Line: 2, Column: 1}, "did not find expected <document start>; the line is indented less"},
		{"", "a: b\nc:\n  d: 1\n  d: 2\n", document.Twice, document.Position{Line: 4, Column: 3}, "first in line 3"},
		{"x.json", `{"a": 1, "a": 2}`, document.Twice, document.Position{Line: 1, Column: 10}, "first in line 1"},
		{"", "[a]: b", document.Form, document.Position{Line: 1, Column: 1}, "expected a name, but this is a list"},
	} {
		_, faults := readAll(c.name, c.source)
		if len(faults) != 1 || faults[0].Why != c.why || faults[0].Position != c.at || !strings.Contains(faults[0].Message, c.message) {
			t.Errorf("%.40q: got %+v; want %d at %v: %s", c.source, faults, c.why, c.at, c.message)
		}
	}
}

// All faults of a document are reported, not only the first.
func TestAllFaults(t *testing.T) {
	_, faults := readAll("", "a: &x 1\nb: *x\nc: !y 2\nc: 3\n<<: {d: 1}\n")
	if len(faults) != 5 {
		t.Errorf("got %+v", faults)
	}
}

// What is written is read back, from either notation.
func TestWriteIsReadBack(t *testing.T) {
	scalars := rapid.OneOf(
		rapid.Map(rapid.String(), document.NewText), rapid.Map(rapid.Int64(), document.NewInteger), rapid.Map(rapid.Bool(), document.NewTruth), rapid.Just(&document.Element{}),
		rapid.Map(rapid.SampledFrom([]string{"null", "true", "1", "0x1", "a: b", "- a", "#", "*", "&a", "!a", "", " ", "\n", "a\nb", "<<", "---", "\u2028", "\ufeff"}), document.NewText),
	)
	var tree func(depth int) *rapid.Generator[*document.Element]
	tree = func(depth int) *rapid.Generator[*document.Element] {
		return rapid.Custom(func(t *rapid.T) *document.Element {
			kind := rapid.SampledFrom([]document.Kind{document.Text, document.List, document.Mapping}).Draw(t, "kind")
			if depth == 0 || kind == document.Text && depth < 4 {
				return scalars.Draw(t, "scalar")
			}
			e := &document.Element{Kind: document.Mapping}
			if kind == document.List {
				e.Kind = document.List
				e.Items = rapid.SliceOfN(tree(depth-1), 0, 4).Draw(t, "items")
				return e
			}
			for _, name := range rapid.SliceOfNDistinct(rapid.StringN(1, 10, -1), 0, 4, rapid.ID).Draw(t, "names") {
				e.Add(name, tree(depth-1).Draw(t, "value"))
			}
			return e
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		e := tree(4).Draw(t, "tree")
		text, err := e.YAML()
		if err != nil {
			t.Fatal(err)
		}
		for name, source := range map[string]string{"x.yaml": string(text), "x.json": string(e.JSON())} {
			back, faults := readAll(name, source)
			if back == nil || faults != nil || string(back.JSON()) != string(e.JSON()) {
				t.Fatalf("%s: read back as %s, %v\n%s", name, show(back), faults, source)
			}
		}
	})
}
