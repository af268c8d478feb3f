package queue_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/queue.md anew")

// A block in docs/queue.md that is preceded by a line such as
//
//	<!-- queue ExampleRun -->
//
// is the body of that function in example_test.go.
var quoted = regexp.MustCompile("(?s)<!-- queue ([^\n]*) -->\n```go\n(.*?)```\n")

func TestDocs(t *testing.T) {
	const name = "../docs/queue.md"
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
		want := bodyOf(string(examples), part[1])
		if want == "" {
			t.Errorf("there is no function %s", part[1])
		}
		if part[2] != want && !*update {
			t.Errorf("what stands below %s is out of date; run go test ./queue -update", part[1])
		}
		return fmt.Sprintf("<!-- queue %s -->\n```go\n%s```\n", part[1], want)
	})
	if all := strings.Count(string(examples), "\nfunc Example"); blocks != all {
		t.Errorf("%d of %d examples are on the page", blocks, all)
	}
	if *update && written != string(doc) {
		if err := os.WriteFile(name, []byte(written), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// bodyOf is what a function does, without what it prints.
func bodyOf(src, name string) string {
	_, rest, _ := strings.Cut(src, "\nfunc "+name+"() {\n")
	rest, _, _ = strings.Cut(rest, "\t// Output:")
	var b strings.Builder
	for line := range strings.Lines(rest) {
		b.WriteString(strings.TrimPrefix(line, "\t"))
	}
	return b.String()
}
