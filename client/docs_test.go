package client

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/grpc.md anew")

// A block in docs/grpc.md that is preceded by a line such as
//
//	<!-- client Example -->
//
// is the body of that function in example_test.go.
var quoted = regexp.MustCompile("(?s)<!-- client ([^\n]*) -->\n```go\n(.*?)```\n")

func TestDocs(t *testing.T) {
	const name = "../docs/grpc.md"
	doc, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	now := quoted.ReplaceAllStringFunc(string(doc), func(block string) string {
		blocks++
		part := quoted.FindStringSubmatch(block)
		want := bodyOf(string(examples), part[1])
		if want == "" {
			t.Errorf("there is no function %s", part[1])
		}
		if part[2] != want && !*update {
			t.Errorf("what stands below %s is out of date; run go test ./client -update", part[1])
		}
		return fmt.Sprintf("<!-- client %s -->\n```go\n%s```\n", part[1], want)
	})
	if blocks < 2 {
		t.Errorf("only %d blocks were found", blocks)
	}
	if *update && now != string(doc) {
		if err := os.WriteFile(name, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// bodyOf is what an example does once there is a service, without what it prints.
func bodyOf(source, name string) string {
	_, rest, _ := strings.Cut(source, "\nfunc "+name+"() {\n")
	rest, _, _ = strings.Cut(rest, "\t// Output:")
	if _, after, ok := strings.Cut(rest, "stop()\n\n"); ok {
		rest = after
	}
	var b strings.Builder
	for line := range strings.Lines(rest) {
		b.WriteString(strings.TrimPrefix(line, "\t"))
	}
	return b.String()
}
