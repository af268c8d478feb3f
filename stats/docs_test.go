package stats

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/statistics.md anew")

// A block in docs/statistics.md that is preceded by a line such as
//
//	<!-- stats ExampleNew -->
//
// is the body of that function in example_test.go.
var quoted = regexp.MustCompile("(?s)<!-- stats ([^\n]*) -->\n```go\n(.*?)```\n")

func TestDocs(t *testing.T) {
	const name = "../docs/statistics.md"
	doc, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	written := quoted.ReplaceAllStringFunc(string(doc), func(block string) string {
		blocks++
		part := quoted.FindStringSubmatch(block)
		want, ok := body(string(examples), part[1])
		if !ok {
			t.Errorf("there is no function %s", part[1])
		}
		if part[2] != want && !*update {
			t.Errorf("what stands below %s is out of date; run go test ./stats -update", part[1])
		}
		return fmt.Sprintf("<!-- stats %s -->\n```go\n%s```\n", part[1], want)
	})
	if blocks < 4 {
		t.Errorf("only %d blocks were found", blocks)
	}
	if *update && written != string(doc) {
		if err := os.WriteFile(name, []byte(written), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// body is what a function does, without what it prints.
func body(src, name string) (string, bool) {
	_, rest, ok := strings.Cut(src, "\nfunc "+name+"(")
	if !ok {
		return "", false
	}
	_, rest, _ = strings.Cut(rest, "{\n")
	rest, _, _ = strings.Cut(rest, "\n}\n")
	rest, _, _ = strings.Cut(rest+"\n", "\t// Output:")
	var b strings.Builder
	for line := range strings.Lines(rest) {
		b.WriteString(strings.TrimPrefix(line, "\t"))
	}
	return b.String(), true
}
