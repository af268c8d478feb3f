package memory

import (
	"os"
	"sync/atomic"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }

// fake is a clock that tests set.
type fake struct{ now atomic.Int64 }

func (f *fake) Now() weir.Micros    { return weir.Micros(f.now.Load()) }
func (f *fake) Set(now weir.Micros) { f.now.Store(int64(now)) }
func (f *fake) Pass(by weir.Micros) { f.now.Add(int64(by)) }

func TestSuite(t *testing.T) {
	storetest.Run(t, subject)
	storetest.RunHolds(t, subject)
}

// Nothing depends on how many holds of a key are open.
func TestManyHolds(t *testing.T) {
	storetest.RunManyHolds(t, func(t *testing.T) storetest.Subject {
		var clock fake
		return storetest.Subject{Store: New(Options{Clock: clock.Now}), Set: clock.Set}
	}, 2)
}

// A client cannot use up the open holds of a key.
func TestSharesOfHolds(t *testing.T) {
	storetest.RunFullHolds(t, func(t *testing.T) storetest.Subject {
		s := subject(t)
		s.Store.(*Store).core.Load().maxOfKey = 10
		return s
	}, 10)
}

func subject(t *testing.T) storetest.Subject {
	var clock fake
	store := New(Options{Clock: clock.Now})
	store.core.Load().maxOfKey = 1000 // less than its share of the places for holds
	t.Cleanup(func() { checkKeys(t, store, DefaultMaxKeys) })
	return storetest.Subject{Store: store, Set: clock.Set}
}
