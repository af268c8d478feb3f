package memory

import (
	"os"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/queue"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// fake is a clock that tests set.
type fake struct{ now atomic.Int64 }

func (f *fake) Now() weir.Micros    { return weir.Micros(f.now.Load()) }
func (f *fake) Set(now weir.Micros) { f.now.Store(int64(now)) }

func open(t testing.TB, queues map[string]queue.Settings) (*Store, *fake) {
	t.Helper()
	var clock fake
	s, err := New(queues, Options{Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return s, &clock
}
