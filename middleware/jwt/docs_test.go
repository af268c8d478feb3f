package jwt_test

import (
	"flag"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/guides/identity.md again")

// What docs/guides/identity.md shows of Go is what the example does.
func TestDocs(t *testing.T) {
	testkit.CheckQuotes(t, testkit.Page{File: "../../docs/guides/identity.md", Word: "jwt", Least: 1, Update: *update})
}
