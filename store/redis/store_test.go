package redis

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/store/storetest"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

// connect starts a server and returns a client of it.
func connect(t *testing.T) rueidis.Client {
	t.Helper()
	return clientOf(t, testredis.Start(t))
}

// connectTwo returns two clients of one new server.
func connectTwo(t *testing.T) (rueidis.Client, rueidis.Client) {
	t.Helper()
	server := testredis.Start(t)
	return clientOf(t, server), clientOf(t, server)
}

func clientOf(t *testing.T, server *testredis.Server) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func storeOn(t *testing.T, client rueidis.Client, o Options) *Store {
	t.Helper()
	o.Timeout = 10 * time.Second // the race detector and a busy machine are slow
	s, err := New(client, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	testkit.OK(t, s.loadOnce("k")) // so that every call is of a function
	return s
}

// fake is a clock that tests set.
type fake struct{ now atomic.Int64 }

func (f *fake) Now() weir.Micros    { return weir.Micros(f.now.Load()) }
func (f *fake) Set(now weir.Micros) { f.now.Store(int64(now)) }

func TestSuite(t *testing.T) {
	client := connect(t)
	for way, use := range ways {
		t.Run(way, func(t *testing.T) {
			open := func(t *testing.T) storetest.Subject {
				if err := client.Do(t.Context(), client.B().Flushall().Build()).Error(); err != nil {
					t.Fatal(err)
				}
				var clock fake
				return storetest.Subject{Store: use(storeOn(t, client, Options{Clock: clock.Now})), Set: clock.Set}
			}
			storetest.Run(t, open)
			storetest.RunHolds(t, open)
		})
	}
}
