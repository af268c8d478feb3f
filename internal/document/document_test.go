package document

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// show writes a tree with its places, in one line.
func show(e *Element) string {
	if e == nil {
		return "none"
	}
	at := fmt.Sprintf("@%d:%d", e.Line, e.Column)
	switch e.Kind {
	case Nothing:
		return "nothing" + at
	case List:
		var parts []string
		for _, item := range e.Items {
			parts = append(parts, show(item))
		}
		return "[" + strings.Join(parts, " ") + "]" + at
	case Mapping:
		var parts []string
		for _, m := range e.Members {
			parts = append(parts, show(m.Name)+"="+show(m.Value))
		}
		return "{" + strings.Join(parts, " ") + "}" + at
	}
	return fmt.Sprintf("%s%q%s", map[Kind]string{Text: "", Integer: "int", Truth: "bool", Other: "other"}[e.Kind], e.Text, at)
}

func read(name, source string) (*Element, []Fault) {
	var faults []Fault
	e := Read(name, source, func(f Fault) { faults = append(faults, f) })
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
		e, faults := read(c.name, c.source)
		if got := show(e); got != c.want || faults != nil {
			t.Errorf("%q:\n got %s %v\nwant %s", c.source, got, faults, c.want)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name, source string
		why          Why
		at           Place
		message      string
	}{
		{"", "a: [b", Syntax, Place{1, 4}, "a bracket is not closed"},
		{"", "a: 'b\nc: d\n", Syntax, Place{1, 4}, "close the quote"},
		{"", "a: [b\nc: d\n", Syntax, Place{2, 2}, "begun in line 1"},
		{"", "a: b\n\x00", Syntax, Place{2, 1}, "invisible"},
		{"", "a: \xff", Syntax, Place{1, 4}, "invalid UTF-8"},
		{"x.json", "{a: 1}", Syntax, Place{1, 2}, "invalid JSON"},
		{"x.json", "{\"a\": 1", Syntax, Place{1, 7}, "unexpected end"},
		{"x.json", "{} {}", Syntax, Place{1, 4}, "after top-level value"},
		{"", strings.Repeat(" ", MaxSize+1), Bounds, Place{}, "the maximum is 4194304"},
		{"", strings.Repeat("[", 20) + strings.Repeat("]", 20), Bounds, Place{1, 17}, "more than 16 levels"},
		{"x.json", strings.Repeat("[", 20) + strings.Repeat("]", 20), Bounds, Place{1, 17}, "more than 16 levels"},
		{"", strings.Repeat("[", 20000), Bounds, Place{1, 10001}, "reduce the nesting"},
		{"", "a: &x b", Foreign, Place{1, 4}, "&x is a YAML anchor"},
		{"", "a: !x b", Foreign, Place{1, 4}, "!x is a YAML tag"},
		{"", "a: *x", Foreign, Place{1, 4}, "needs quotes"},
		{"", "%TAG ! a\n---\n", Foreign, Place{1, 1}, "directive"},
		{"", "a: b\n--- \nc: d", Foreign, Place{2, 1}, "a second YAML document"},
		{"", "a: b\n...\nc: d", Foreign, Place{3, 1}, "a second YAML document"},
		{"", "  a: b\nc: d\n", Syntax, Place{2, 1}, "did not find expected <document start>; the line is indented less"},
		{"", "a: b\nc:\n  d: 1\n  d: 2\n", Twice, Place{4, 3}, "first in line 3"},
		{"x.json", `{"a": 1, "a": 2}`, Twice, Place{1, 10}, "first in line 1"},
		{"", "[a]: b", Form, Place{1, 1}, "expected a name, but this is a list"},
	} {
		_, faults := read(c.name, c.source)
		if len(faults) != 1 || faults[0].Why != c.why || faults[0].Place != c.at || !strings.Contains(faults[0].Message, c.message) {
			t.Errorf("%.40q: got %+v; want %d at %v: %s", c.source, faults, c.why, c.at, c.message)
		}
	}
}

// All faults of a document are reported, not only the first.
func TestAllFaults(t *testing.T) {
	_, faults := read("", "a: &x 1\nb: *x\nc: !y 2\nc: 3\n<<: {d: 1}\n")
	if len(faults) != 5 {
		t.Errorf("got %+v", faults)
	}
}

func TestQuoter(t *testing.T) {
	long := strings.Repeat("x", 200)
	q := NewQuoter("\xef\xbb\xbfab\x1b[31mc\nkey: s3cret\n\tü防 x\n" + long + "\n")
	q.Hide(Place{2, 6}, "s3cret")
	q.Hide(Place{2, 6}, "")
	for at, want := range map[Place]string{
		{1, 2}:   "ab�[31mc\n ^",
		{2, 6}:   "key: ******\n     ^",
		{3, 5}:   " ü防 x\n    ^",
		{4, 100}: "…" + strings.Repeat("x", 100) + "…\n" + strings.Repeat(" ", 51) + "^",
		{4, 1}:   strings.Repeat("x", 50) + "…\n^",
		{4, 999}: "…" + strings.Repeat("x", 50) + "\n" + strings.Repeat(" ", 51) + "^",
		{9, 1}:   "", {0, 0}: "",
	} {
		if got := q.Quote(at); got != want {
			t.Errorf("%v: got\n%s\nwant\n%s", at, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	if got := Clip("ääää", 8); got != "ääää" {
		t.Errorf("got %q", got)
	}
	if got := Clip("äääää", 8); got != "ää…" {
		t.Errorf("got %q", got)
	}
}

// What is written is read back, from either notation.
func TestWriteIsReadBack(t *testing.T) {
	scalars := rapid.OneOf(
		rapid.Map(rapid.String(), NewText), rapid.Map(rapid.Int64(), NewInteger), rapid.Map(rapid.Bool(), NewTruth), rapid.Just(&Element{}),
		rapid.Map(rapid.SampledFrom([]string{"null", "true", "1", "0x1", "a: b", "- a", "#", "*", "&a", "!a", "", " ", "\n", "a\nb", "<<", "---", "\u2028", "\ufeff"}), NewText),
	)
	var tree func(depth int) *rapid.Generator[*Element]
	tree = func(depth int) *rapid.Generator[*Element] {
		return rapid.Custom(func(t *rapid.T) *Element {
			kind := rapid.SampledFrom([]Kind{Text, List, Mapping}).Draw(t, "kind")
			if depth == 0 || kind == Text && depth < 4 {
				return scalars.Draw(t, "scalar")
			}
			e := &Element{Kind: Mapping}
			if kind == List {
				e.Kind = List
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
			back, faults := read(name, source)
			if back == nil || faults != nil || string(back.JSON()) != string(e.JSON()) {
				t.Fatalf("%s: read back as %s, %v\n%s", name, show(back), faults, source)
			}
		}
	})
}

// A value that is written as it is can be pointed into. What is hidden afterwards is not
// shown.
func TestWithin(t *testing.T) {
	q := NewQuoter("a: x + y\nb: 'x + y' # s3cret\nc: >\n  x +\n  y\n")
	for at, want := range map[Place]Place{
		{1, 4}: {1, 8}, {2, 4}: {2, 9}, {3, 4}: {3, 4}, {1, 40}: {1, 40}, {9, 1}: {9, 1}, {}: {},
	} {
		if got := q.Within(at, "x + y", 4); got != want {
			t.Errorf("%v is %v, want %v", at, got, want)
		}
	}
	q.Within(Place{2, 4}, "x + y", 4)
	q.Hide(Place{2, 12}, "s3cret")
	if got := q.Quote(Place{2, 9}); got != "b: 'x + y' # ******\n        ^" {
		t.Errorf("%q", got)
	}
}
