package client

import (
	"flag"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/reference/grpc.md again")

// What docs/reference/grpc.md shows of Go is what the examples do.
func TestDocs(t *testing.T) {
	testkit.CheckQuotes(t, testkit.Page{File: "../docs/reference/grpc.md", Word: "client", Least: 2, After: "stop()\n\n", Update: *update})
}
