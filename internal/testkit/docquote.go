package testkit

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Page is a document with such blocks.
type Page struct {
	File   string // the document
	Word   string // with which the lines before its blocks begin
	Least  int    // how many blocks there are at least: a page that shows none proves nothing
	All    bool   // every example must be shown
	After  string // what ends the preparations of an example, which are not shown; "" for none
	Update bool   // write the blocks again instead of complaining
}

var example = regexp.MustCompile(`(?m)^func (Example\w*)\(`)

// CheckQuotes reports what is out of date, or writes it again. The examples are those of the
// package under test.
func CheckQuotes(t testing.TB, p Page) {
	t.Helper()
	document, err := os.ReadFile(p.File)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("(?s)<!-- " + regexp.QuoteMeta(p.Word) + " ([^\n]*) -->\n```go\n(.*?)```\n")
	var shown []string
	written := quoted.ReplaceAllStringFunc(string(document), func(block string) string {
		part := quoted.FindStringSubmatch(block)
		name, got := part[1], part[2]
		shown = append(shown, name)
		want, found := body(string(source), name, p.After)
		if !found {
			t.Errorf("there is no function %s", name)
			return block
		}
		if got != want && !p.Update {
			t.Errorf("%s: what stands below %s is out of date; run go test -update in this package", p.File, name)
		}
		return fmt.Sprintf("<!-- %s %s -->\n```go\n%s```\n", p.Word, name, want)
	})
	if len(shown) < max(1, p.Least) {
		t.Errorf("%s: only %d blocks were found", p.File, len(shown))
	}
	for _, e := range example.FindAllStringSubmatch(string(source), -1) {
		if p.All && !slices.Contains(shown, e[1]) {
			t.Errorf("%s does not show %s", p.File, e[1])
		}
	}
	if p.Update && written != string(document) {
		if err := os.WriteFile(p.File, []byte(written), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// body is what a function does, without what it prints.
func body(source, name, after string) (string, bool) {
	_, rest, found := strings.Cut(source, "\nfunc "+name+"(")
	if !found {
		return "", false
	}
	_, rest, _ = strings.Cut(rest, "{\n")
	rest, _, _ = strings.Cut(rest, "\n}\n")
	rest, _, _ = strings.Cut(rest+"\n", "\t// Output:")
	if _, shown, found := strings.Cut(rest, after); found && after != "" {
		rest = shown
	}
	var b strings.Builder
	for line := range strings.Lines(rest) {
		b.WriteString(strings.TrimPrefix(line, "\t"))
	}
	return b.String(), true
}
