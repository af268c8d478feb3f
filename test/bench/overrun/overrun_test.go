package overrun

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

// If no estimate is below the cost, nobody exceeds the limit: on every algorithm, in memory and
// in Redis, with a goroutine for each request. If the limit is charged after the requests, all of
// them get through, which shows that an overrun would be seen.
func TestUpperBoundsAreNeverExceeded(t *testing.T) {
	client := testkit.Must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{testredis.Start(t).Addr}, DisableCache: true}))(t)
	t.Cleanup(client.Close)
	inMemory := func(*testing.T, string) weir.Store { return memory.New(memory.Options{Clock: now}) }
	inRedis := func(t *testing.T, prefix string) weir.Store {
		store := testkit.Must(redis.New(client, redis.Options{Prefix: prefix, Timeout: time.Minute, Clock: now}))(t)
		t.Cleanup(func() { store.Close() })
		return store
	}
	for name, open := range map[string]func(t *testing.T, prefix string) weir.Store{"memory": inMemory, "redis": inRedis} {
		for _, a := range weir.Algorithms() {
			t.Run(name+" "+a.String(), func(t *testing.T) {
				for i, load := range loads() {
					for k, m := range methods[:3] {
						f := play(t, open(t, strings.Join([]string{a.String(), "abc"[i : i+1], "abc"[k : k+1], ""}, ":")), a, load, m, true)
						if m.estimate == nil {
							if f.allowed != len(load.costs) || f.overrun() == 0 {
								t.Errorf("%+v, of %d", f, len(load.costs))
							}
						} else if f.overrun() != 0 || f.used < limit/2 {
							t.Errorf("%+v: overrun %d", f, f.overrun())
						}
					}
				}
			})
		}
	}
}

// The table is what the program says.
func TestReport(t *testing.T) {
	r := bench.Test(t)
	Run(r)
	b := r.File("overrun.txt")
	if kept := testkit.Must(os.ReadFile("../results/overrun.txt"))(t); b.String() != string(kept) {
		t.Errorf("results/overrun.txt is of another program; run go run . overrun\n%s", b)
	}
}
