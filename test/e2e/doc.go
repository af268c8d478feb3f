// Package e2e tests the built binary as people use it. It has no code of its
// own; the scripts in testdata are the tests. It is a module of its own, so that only its tests need
// a library for browsers and one for scripts.
package e2e

// What the tests need. Go compiles again, in a test with a profile, what only the test imports, even if
// it was compiled for weir with the same flags.
import (
	_ "github.com/chromedp/chromedp"
	_ "github.com/coder/websocket"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "google.golang.org/grpc/encoding/gzip"
	_ "google.golang.org/grpc/reflection/grpc_reflection_v1"

	_ "github.com/weirhq/weir/internal/build"
	_ "github.com/weirhq/weir/internal/gateway"
	_ "github.com/weirhq/weir/internal/server/envoyrls"
	_ "github.com/weirhq/weir/internal/testkit/testredis"
	_ "github.com/weirhq/weir/rule/expression"
	_ "github.com/weirhq/weir/rule/rulefile"
	_ "github.com/weirhq/weir/stats/archive"
)
