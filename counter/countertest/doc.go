// Package countertest is the suite that every store of counters must pass:
//
//	func TestSuite(t *testing.T) {
//		countertest.Run(t, func(t *testing.T, o countertest.Settings) countertest.Subject {
//			var now atomic.Int64
//			store := mystore.New(mystore.Options{MaxMembers: o.MaxMembers, Clock: …})
//			return countertest.Subject{Store: store, Set: …}
//		})
//	}
//
// The store must be empty each time, and take its time from Set.
package countertest
