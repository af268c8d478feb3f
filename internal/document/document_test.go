package document

import (
	"strings"
	"testing"
)

// A program without package rule/rulefile reads JSON, and says what it lacks for anything else.
func TestWithoutYAML(t *testing.T) {
	var faults []Fault
	report := func(f Fault) { faults = append(faults, f) }
	if e := Read("", `{"a": [1]}`, report); e == nil || string(e.JSON()) != `{"a":[1]}` || faults != nil {
		t.Errorf("got %+v, %v", e, faults)
	}
	if e := Read("", " \n", report); e == nil || e.Kind != Nothing || faults != nil {
		t.Errorf("of an empty document: %+v, %v", e, faults)
	}
	const remedy = `import _ "github.com/weirhq/weir/rule/rulefile"`
	if e := Read("", "a: [1]\n", report); e != nil || len(faults) != 1 || !strings.Contains(faults[0].Message, remedy) {
		t.Errorf("got %+v, %v", e, faults)
	}
	if _, err := NewText("a").YAML(); err == nil || !strings.Contains(err.Error(), remedy) {
		t.Error(err)
	}
}

func TestQuoter(t *testing.T) {
	long := strings.Repeat("x", 200)
	q := NewQuoter("\xef\xbb\xbfab\x1b[31mc\nkey: s3cret\n\tü防 x\n" + long + "\n")
	q.Hide(Position{2, 6}, "s3cret")
	q.Hide(Position{2, 6}, "")
	for at, want := range map[Position]string{
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

// A value that is written as it is can be pointed into. What is hidden afterwards is not
// shown.
func TestWithin(t *testing.T) {
	q := NewQuoter("a: x + y\nb: 'x + y' # s3cret\nc: >\n  x +\n  y\n")
	for at, want := range map[Position]Position{
		{1, 4}: {1, 8}, {2, 4}: {2, 9}, {3, 4}: {3, 4}, {1, 40}: {1, 40}, {9, 1}: {9, 1}, {}: {},
	} {
		if got := q.Within(at, "x + y", 4); got != want {
			t.Errorf("%v is %v, want %v", at, got, want)
		}
	}
	q.Within(Position{2, 4}, "x + y", 4)
	q.Hide(Position{2, 12}, "s3cret")
	if got := q.Quote(Position{2, 9}); got != "b: 'x + y' # ******\n        ^" {
		t.Errorf("%q", got)
	}
}
