package queue_test

import (
	"flag"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/reference/queue.md again")

// What docs/reference/queue.md shows of Go is what the examples do.
func TestDocs(t *testing.T) {
	testkit.CheckQuotes(t, testkit.Page{File: "../docs/reference/queue.md", Word: "queue", All: true, Update: *update})
}
