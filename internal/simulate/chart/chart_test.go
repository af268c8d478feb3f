package chart

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// hostile is text of the kind that a client may have got into a log.
const hostile = "</text><script>alert(1)</script>\"'&\x00\x1b[31m\u202eevil\xff"

func small() *Picture {
	return &Picture{
		Title: "a title", About: []string{"about it"}, Slices: 4,
		Ticks: []Tick{{0, "0s"}, {2, "2s"}},
		Lanes: []Lane{{
			Name: "lane", Most: 10, Notes: []string{"a note"},
			Bars:  []Bars{{Good, []int64{5, 0, 1, 10}}, {Bad, []int64{5, 0, 0, 90}}},
			Over:  &Bars{Good, []int64{0, 1, 0, 0}},
			Marks: []int64{1, 0, 0, 2}, Line: []float64{1, 0.5, -3, 7},
		}},
		Legend: []Entry{{Good, "good"}, {Accent, "line"}},
	}
}

func svg(t testing.TB, pictures ...*Picture) string {
	t.Helper()
	var b strings.Builder
	if err := WriteSVG(&b, pictures...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// wellFormed reads a document to its end, and returns the elements in it.
func wellFormed(t rapid.TB, document string) map[string]int {
	elements := make(map[string]int)
	d := xml.NewDecoder(strings.NewReader(document))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return elements
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
		}
	}
}

func TestBarsStandOnEachOther(t *testing.T) {
	got := svg(t, small())
	// A lane is 46 high, and each of its slices 146 wide.
	for _, want := range []string{
		`<path class="good" d="M168 120V97H314V120z`, // half of the lane
		`<path class="bad" d="M168 97V74H314V97z"/>`, // the other half; elsewhere there is no room
		`<path class="accent" d="M168 74H314V97H460V120H606V74H752"/>`,
		`<text class="tick" x="460"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	wellFormed(t, got)
	if n := strings.Count(got, "l5 5m0-5l-5 5"); n != 2 {
		t.Errorf("%d crosses", n)
	}
}

func TestNothingFromElsewhere(t *testing.T) {
	page := Page{Title: "t", Parts: []Part{{Heading: "h", Picture: small(), Table: &Table{Head: []string{"a", "b"}, Rows: [][]string{{"1", "2"}}}, Lines: []string{"l"}}}}
	var b strings.Builder
	if err := page.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	for _, document := range []string{svg(t, small(), small()), b.String()} {
		rest := strings.ReplaceAll(document, "http://www.w3.org/2000/svg", "")
		for _, never := range []string{"http:", "https:", "//", "<script", "url(", "@import", "href", "src="} {
			if strings.Contains(rest, never) {
				t.Errorf("%q is in\n%s", never, document)
			}
		}
		if !strings.Contains(document, "prefers-color-scheme:dark") {
			t.Error("there are no dark colours")
		}
	}
}

func TestHostileText(t *testing.T) {
	p := small()
	p.Title, p.About[0], p.Lanes[0].Name, p.Lanes[0].Notes[0] = hostile, hostile, hostile, hostile
	p.Ticks[0].Label, p.Legend[0].Text = hostile, hostile
	elements := wellFormed(t, svg(t, p))
	page := Page{Title: hostile, Parts: []Part{{Heading: hostile, Picture: p, Table: &Table{Head: []string{hostile}, Rows: [][]string{{hostile}}}, Lines: []string{hostile}}}}
	var b strings.Builder
	if err := page.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	if elements["script"] != 0 || strings.Contains(b.String(), "<script") || strings.ContainsAny(b.String(), "\x00\x1b\u202e") {
		t.Errorf("%v\n%s", elements, b.String())
	}
}

// Any picture is a well-formed document, and the same each time.
func TestAnyPicture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "slices")
		values := rapid.SliceOfN(rapid.Int64(), n, n)
		p := &Picture{Title: rapid.String().Draw(t, "title"), Slices: n, Ticks: []Tick{{rapid.Float64Range(0, 300).Draw(t, "tick"), rapid.String().Draw(t, "label")}}}
		p.Lanes = []Lane{{
			Name: rapid.String().Draw(t, "name"), Most: rapid.Int64().Draw(t, "most"), Marks: values.Draw(t, "marks"),
			Bars: []Bars{{Good, values.Draw(t, "good")}, {Bad, values.Draw(t, "bad")}},
			Line: rapid.SliceOfN(rapid.Float64(), n, n).Draw(t, "line"),
		}}
		var one, two strings.Builder
		if WriteSVG(&one, p) != nil || WriteSVG(&two, p) != nil || one.String() != two.String() {
			t.Fatal("two drawings differ")
		}
		wellFormed(t, one.String())
		if strings.Contains(one.String(), "NaN") || strings.Contains(one.String(), "Inf") {
			t.Fatal(one.String())
		}
	})
}
