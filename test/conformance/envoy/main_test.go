package envoy

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/test/conformance/envoy/peer"
)

var programs peer.Programs

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-conformance-")
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
		programs, err = peer.Build(ctx, dir)
		cancel()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}
