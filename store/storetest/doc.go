// Package storetest is the suite that every store must pass, of this project or
// of anybody else:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) scenario.Subject {
//			var now atomic.Int64
//			store := mystore.New(mystore.WithClock(now.Load))
//			return scenario.Subject{Store: store, Set: func(m weir.Micros) { now.Store(int64(m)) }}
//		})
//	}
//
// The store must be empty each time and must take its time from Set. It may
// forget a key that has been as good as new for ten seconds or more.
package storetest
