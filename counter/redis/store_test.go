package redis

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit/countertest"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

func clientWith(t *testing.T, o rueidis.ClientOption) rueidis.Client {
	t.Helper()
	o.DisableCache, o.DisableRetry = true, true
	o.Dialer.Timeout = 10 * time.Second
	client, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func clientOf(t *testing.T, server *testredis.Server) rueidis.Client {
	t.Helper()
	return clientWith(t, rueidis.ClientOption{InitAddress: []string{server.Addr}, ForceSingleClient: true})
}

func storeOn(t *testing.T, client rueidis.Client, o Options) *Store {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 20 * time.Second // the race detector and a busy machine are slow
	}
	s, err := New(client, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fake is a clock that tests set.
type fake struct{ now atomic.Int64 }

func (f *fake) Now() weir.Micros    { return weir.Micros(f.now.Load()) }
func (f *fake) Set(now weir.Micros) { f.now.Store(int64(now)) }

func TestSuite(t *testing.T) {
	client := clientOf(t, testredis.Start(t))
	countertest.Run(t, func(t *testing.T, o countertest.Settings) countertest.Subject {
		if err := client.Do(t.Context(), client.B().Flushall().Build()).Error(); err != nil {
			t.Fatal(err)
		}
		var clock fake
		store := storeOn(t, client, Options{MaxMembers: o.MaxMembers, Retention: o.Retention, Clock: clock.Now})
		return countertest.Subject{Store: store, Set: clock.Set}
	})
}
