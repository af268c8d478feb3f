package rulefile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/document"
)

func readAnchored(source string) (*document.Element, []document.Fault) {
	var faults []document.Fault
	e := document.ReadAnchored("", source, func(f document.Fault) { faults = append(faults, f) })
	return e, faults
}

// An alias is what its anchor names, and a merge key adds what is not there.
func TestAnchors(t *testing.T) {
	for source, want := range map[string]string{
		"a: &x 1\nb: *x\n":                                      `{"a":1,"b":1}`,
		"a: &x {c: [1, 2]}\nb: *x\nd: [*x, *x]\n":               `{"a":{"c":[1,2]},"b":{"c":[1,2]},"d":[{"c":[1,2]},{"c":[1,2]}]}`,
		"a: &x {c: 1, d: 2}\nb:\n  <<: *x\n  d: 3\n":            `{"a":{"c":1,"d":2},"b":{"d":3,"c":1}}`,
		"a: &x {c: 1}\nb: &y {c: 2, d: 2}\ne: {<<: [*x, *y]}\n": `{"a":{"c":1},"b":{"c":2,"d":2},"e":{"c":1,"d":2}}`,
		"a: {<<: {b: 1}}\n":                                     `{"a":{"b":1}}`,
		"a: &x 1\nb: &x 2\nc: *x\n":                             `{"a":1,"b":2,"c":2}`,
		"- &x k\n- {*x : 1}\n":                                  `["k",{"k":1}]`,
	} {
		e, faults := readAnchored(source)
		if e == nil || len(faults) > 0 || strings.Join(strings.Fields(string(e.JSON())), "") != want {
			t.Errorf("%q is %s, want %s; %v", source, e.JSON(), want, faults)
		}
	}
	for source, want := range map[string]string{
		"a: *x\n":              "unknown anchor",
		"a: !!str 1\n":         "YAML tag",
		"a: {<<: 1}\n":         "write an alias of a mapping",
		"a: &x [*x]\n":         "more than 16 aliases",
		"a: &x 1\na: *x\n":     "twice",
		"a: &x {b: *x}\n":      "more than 16 aliases",
		"a: &x {<<: *x}\nb: 1": "more than 16 aliases",
	} {
		if _, faults := readAnchored(source); len(faults) != 1 || !strings.Contains(faults[0].Message, want) {
			t.Errorf("%q: %v, want %q", source, faults, want)
		}
	}
}

// Few lines that stand for many values are as many as they stand for.
func TestAliasBomb(t *testing.T) {
	bomb := "a0: &a0 [x]\n"
	for i := range 15 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 20))
	}
	allocated := testing.AllocsPerRun(1, func() {
		if _, faults := readAnchored(bomb); len(faults) != 1 || faults[0].Why != document.Bounds || !strings.Contains(faults[0].Message, "more than 500000 names and values") {
			t.Fatal(faults)
		}
	})
	if allocated > 2*document.MaxValues {
		t.Errorf("%.0f allocations", allocated)
	}
}

// A long document with anchors is read in one piece.
func TestLongAnchored(t *testing.T) {
	source := "a: &x {b: 1}\nc:\n" + strings.Repeat("  - *x\n", 7000)
	e, faults := readAnchored(source)
	if len(faults) > 0 || len(e.Get("c").Items) != 7000 || e.Get("c").Items[6999].Get("b") == nil {
		t.Error(faults)
	}
	if _, faults := readAnchored(source + strings.Repeat("  - *x\n", 20_000)); len(faults) != 1 || !strings.Contains(faults[0].Message, "at most 32000 lines and values") {
		t.Error(faults)
	}
}
