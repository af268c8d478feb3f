package testredis

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// VerifyMain runs the tests of a package, and fails if they leave goroutines behind. Those
// that are about to end get more time than goleak gives them, for the machine may be busy.
func VerifyMain(m *testing.M, options ...goleak.Option) {
	code := m.Run()
	// A cluster's client closes connections that it needs no more five seconds later,
	// whether or not it is closed itself.
	options = append(options, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
	if code == 0 {
		err := goleak.Find(options...)
		for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); {
			err = goleak.Find(options...)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			code = 1
		}
	}
	os.Exit(code)
}
