package testredis

import (
	"testing"

	"go.uber.org/goleak"
)

// VerifyMain runs the tests of a package that has clients of Redis, and fails if they
// leave goroutines behind.
func VerifyMain(m *testing.M, options ...goleak.Option) {
	// A cluster's client closes connections that it needs no more five seconds later,
	// whether or not it is closed itself.
	goleak.VerifyTestMain(m, append(options,
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))...)
}
