package redis

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/queue"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

func clientOf(t testing.TB, addr string) rueidis.Client {
	t.Helper()
	return clientWith(t, rueidis.ClientOption{InitAddress: []string{addr}})
}

func clientWith(t testing.TB, o rueidis.ClientOption) rueidis.Client {
	t.Helper()
	o.DisableCache, o.DisableRetry, o.ForceSingleClient = true, true, true
	client, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// fake is a clock that tests set.
type fake struct{ now atomic.Int64 }

func (f *fake) Now() weir.Micros    { return weir.Micros(f.now.Load()) }
func (f *fake) Set(now weir.Micros) { f.now.Store(int64(now)) }

func storeOn(t testing.TB, client rueidis.Client, queues map[string]queue.Settings, o Options) *Store {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second // the race detector and a busy machine are slow
	}
	s, err := New(client, queues, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func flush(t testing.TB, client rueidis.Client) {
	t.Helper()
	if err := client.Do(t.Context(), client.B().Flushall().Build()).Error(); err != nil {
		t.Fatal(err)
	}
}
