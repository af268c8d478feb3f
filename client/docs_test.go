package client

import (
	"flag"
	"testing"

	"github.com/weirhq/weir/internal/docquote"
)

var update = flag.Bool("update", false, "write docs/reference/grpc.md again")

// What docs/reference/grpc.md shows of Go is what the examples do.
func TestDocs(t *testing.T) {
	docquote.Check(t, docquote.Page{File: "../docs/reference/grpc.md", Word: "client", Least: 2, After: "stop()\n\n", Update: *update})
}
