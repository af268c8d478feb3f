package weir_test

import (
	"flag"
	"os"
	"testing"

	"github.com/weirhq/weir/internal/testkit"
)

func TestMain(m *testing.M) {
	// Properties are cheap here, so each is tried a thousand times, not a
	// hundred; -rapid.checks still has the last word.
	if err := flag.Set("rapid.checks", "1000"); err != nil {
		panic(err)
	}
	os.Exit(testkit.Run(m))
}
