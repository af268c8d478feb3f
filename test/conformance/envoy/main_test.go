package envoy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/internal/build"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/test/conformance/envoy/peer"
)

var (
	programs peer.Programs
	weir     string // the path of the program
)

// buildWeir builds weir with the dependencies of its own module.
func buildWeir(dir string) (string, error) {
	path := filepath.Join(dir, "weir")
	if out, err := build.Weir("../../..", build.Host, path, "-buildvcs=false").CombinedOutput(); err != nil {
		return "", fmt.Errorf("weir cannot be built: %w\n%s", err, out)
	}
	return path, nil
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-conformance-")
	if err == nil {
		// As weir, so that the standard library is compiled once for both. Only go test knows how long is too long.
		if programs, err = peer.Build(context.Background(), dir, build.FlagsOf("../../.."), build.Environment(build.Host)); err == nil {
			weir, err = buildWeir(dir)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := testkit.Run(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}
