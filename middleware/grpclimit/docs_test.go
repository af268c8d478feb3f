package grpclimit

import (
	"flag"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/reference/middleware.md again")

// What docs/reference/middleware.md shows of Go is what the examples do.
func TestDocs(t *testing.T) {
	testkit.CheckQuotes(t, testkit.Page{File: "../../docs/reference/middleware.md", Word: "grpclimit", Least: 2, Update: *update})
}
