package counter_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/counters.md anew")

// A block in docs/counters.md that is preceded by a line such as
//
//	<!-- counter Example_id -->
//
// is the body of that function in example_test.go.
var quoted = regexp.MustCompile("(?s)<!-- counter ([^\n]*) -->\n```go\n(.*?)```\n")

func TestDocs(t *testing.T) {
	const name = "../docs/counters.md"
	doc, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	written := quoted.ReplaceAllStringFunc(string(doc), func(block string) string {
		part := quoted.FindStringSubmatch(block)
		want, ok := body(string(source), part[1])
		if !ok {
			t.Errorf("there is no function %s", part[1])
		}
		if part[2] != want && !*update {
			t.Errorf("what stands below %s is out of date; run go test ./counter -update", part[1])
		}
		shown[part[1]] = true
		return fmt.Sprintf("<!-- counter %s -->\n```go\n%s```\n", part[1], want)
	})
	for _, example := range regexp.MustCompile(`(?m)^func (Example\w*)\(`).FindAllStringSubmatch(string(source), -1) {
		if !shown[example[1]] {
			t.Errorf("%s does not show %s", name, example[1])
		}
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
