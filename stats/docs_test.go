package stats

import (
	"flag"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/reference/statistics.md again")

// What docs/reference/statistics.md shows of Go is what the examples do.
func TestDocs(t *testing.T) {
	testkit.CheckQuotes(t, testkit.Page{File: "../docs/reference/statistics.md", Word: "stats", Least: 4, Update: *update})
}
