package httplimit

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/reference/middleware.md again")

// What docs/reference/middleware.md shows of Go is what the examples do.
func TestDocs(t *testing.T) {
	testkit.CheckQuotes(t, testkit.Page{File: "../../docs/reference/middleware.md", Word: "httplimit", Least: 4, Update: *update})
}

// What the docs show of gin is what the example does.
func TestDocsGin(t *testing.T) {
	doc, err := os.ReadFile("../../docs/reference/middleware.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("../../examples/middleware/gin/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```go\nfunc limited(")
	shown, _, ok := strings.Cut(rest, "```\n")
	if !ok || !strings.Contains(string(program), "func limited("+shown) {
		t.Error("docs/reference/middleware.md shows another function than examples/middleware/gin/main.go has")
	}
}
