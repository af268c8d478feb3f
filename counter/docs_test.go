package counter_test

import (
	"flag"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/reference/counters.md again")

// What docs/reference/counters.md shows of Go is what the examples do.
func TestDocs(t *testing.T) {
	testkit.CheckQuotes(t, testkit.Page{File: "../docs/reference/counters.md", Word: "counter", All: true, Update: *update})
}
