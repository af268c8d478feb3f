package testredis

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/weirhq/weir/internal/testkit"
)

// VerifyMain runs the tests of a package, and fails if they leave goroutines behind. A cluster's
// client closes connections that it needs no more five seconds later, whether or not it is
// closed itself.
func VerifyMain(m *testing.M, options ...goleak.Option) {
	os.Exit(testkit.Run(m, append(options, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))...))
}
