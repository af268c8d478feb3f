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

func svg[F Figure](t testing.TB, figures ...F) string {
	t.Helper()
	var b strings.Builder
	if err := WriteSVG(&b, figures...); err != nil {
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
	page := Page{Title: "t", Parts: []Part{{Heading: "h", Figure: small(), Table: &Table{Head: []string{"a", "b"}, Rows: [][]string{{"1", "2"}}}, Lines: []string{"l"}}}}
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
	page := Page{Title: hostile, Parts: []Part{{Heading: hostile, Figure: p, Table: &Table{Head: []string{hostile}, Rows: [][]string{{hostile}}}, Lines: []string{hostile}}}}
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

func fewCurves() *Curves {
	return &Curves{
		Title: "a title", About: []string{"about it"}, X: "keys", Y: "µs",
		Lines: []Curve{
			{Name: "flat", Ink: Good, Points: []Point{{1, 2}, {10, 2}, {1e6, 2}}},
			{Name: "as x", Ink: Bad, Points: []Point{{1, 2}, {100, 200}}},
			{Name: "as flat", Ink: Accent, Points: []Point{{1, 2}, {1e6, 2.01}}},
		},
	}
}

// Six decades are 644 wide; 2.2, from 1.6 to 252, are 260 high.
func TestCurvesHaveTwoLogarithmicAxes(t *testing.T) {
	got := svg(t, fewCurves())
	for _, want := range []string{
		`<path class="curve good" d="M76 330.18L183.33 330.18L720 330.18"/>`,
		`<path class="curve bad" d="M76 330.18L290.67 93.82"/>`,
		`>1 M</text>`, `>10 k</text>`, `>µs</text>`, `>keys</text>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	wellFormed(t, got)
}

// Names of lines that end at the same place are below each other.
func TestNamesOfCurves(t *testing.T) {
	c := fewCurves()
	_, y := c.spans(100)
	at := c.names(y)
	if flat, other := at[0], at[2]; flat-other < nameHigh || at[1] > other {
		t.Errorf("names at %v", at)
	}
}

func TestRoundNumbers(t *testing.T) {
	for n, want := range map[float64]string{0.5: "0.5", 1: "1", 200: "200", 1000: "1 k", 20_000: "20 k", 1e7: "10 M", 5e9: "5 G"} {
		if got := short(n); got != want {
			t.Errorf("short(%v) = %q, expected %q", n, got, want)
		}
	}
}

func TestHostileNamesOfCurves(t *testing.T) {
	c := fewCurves()
	c.Title, c.About, c.X, c.Y, c.Lines[0].Name = hostile, []string{hostile}, hostile, hostile, hostile
	if elements := wellFormed(t, svg(t, c)); elements["script"] > 0 {
		t.Error(elements)
	}
}

// One point is a curve, too.
func TestOnePoint(t *testing.T) {
	c := &Curves{Lines: []Curve{{Points: []Point{{5, 5}}}}}
	if got := svg(t, c); strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
		t.Error(got)
	}
}
