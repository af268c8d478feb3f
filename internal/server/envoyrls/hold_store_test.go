package envoyrls

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/envoy/envoyconfig"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/store/memory"
	"github.com/weirhq/weir/store/redis"
)

// A log, because Redis has a clock of its own, at which a window may end at any time.
const logFile = `
domain: d
descriptors:
  - key: user
    hold: {id: request_id, end: {phase: done}}
    reserve: 100
    rate_limit: {unit: hour, algorithm: sliding_log, requests_per_unit: 1000}
  - key: always
    charge: always
    rate_limit: {unit: hour, algorithm: sliding_log, requests_per_unit: 1000}
`

// onStores runs a test with two services on one store: in memory, on a Redis and on a Redis Cluster.
func onStores(t *testing.T, test func(t *testing.T, a, b *Service)) {
	shared := map[string]func(t *testing.T) func() weir.Store{
		"memory": func(*testing.T) func() weir.Store {
			store := memory.New(memory.Options{})
			return func() weir.Store { return store }
		},
		"redis": func(t *testing.T) func() weir.Store { return opening(t, "redis://"+testredis.Start(t).Addr) },
		"cluster": func(t *testing.T) func() weir.Store {
			return opening(t, "redis+cluster://"+strings.Join(testredis.StartSteadyCluster(t).Addrs, ","))
		},
	}
	for name, share := range shared {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := share(t)
			test(t, serviceOn(t, open(), logFile), serviceOn(t, open(), logFile))
		})
	}
}

func opening(t *testing.T, url string) func() weir.Store {
	return func() weir.Store { return openRedis(t, url) }
}

func openRedis(t testing.TB, url string) weir.Store {
	t.Helper()
	store, err := redis.Open(url + "?timeout=30s") // a busy machine is slow, and that is no trouble here
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

func serviceOn(t testing.TB, store weir.Store, source string) *Service {
	t.Helper()
	config, problems := envoyconfig.Read([]envoyconfig.File{{Name: "test.yaml", Source: []byte(source)}}, envoyconfig.Options{})
	if config == nil {
		t.Fatal(problems)
	}
	e, err := engine.New(engine.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	s, err := New(Options{Engine: e, Config: func() *envoyconfig.Config { return config }, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Whatever begins and ends come in whatever order, at whichever of two services, usage is what a list of open holds says.
func TestHoldHistories(t *testing.T) {
	onStores(t, func(t *testing.T, a, b *Service) {
		for seed := range uint64(6) {
			r := rand.New(rand.NewPCG(seed, 1))
			usage, open, made := 0, map[string]int{}, map[string]int{}
			ids := 1 + r.IntN(6)
			for i := range 120 {
				s, id := a, fmt.Sprint(r.IntN(ids))
				if r.IntN(2) == 0 {
					s = b
				}
				list := fmt.Sprintf("user=%d,request_id=%s", seed, id)
				if r.IntN(5) < 2 {
					used := r.IntN(150)
					if usage += used; open[id] > 0 {
						open[id]--
						usage -= 100
					}
					list += fmt.Sprintf(",phase=done x%d", used)
					if got := said(s.ShouldRateLimit(t.Context(), request(list))); got != "ok | ok 0" {
						t.Fatalf("seed %d, call %d, %s: %s", seed, i, list, got)
					}
					continue
				}
				code, left := "over", 0
				if usage+100 <= 1000 {
					if made[id]++; made[id] <= 32 { // beyond that, there is no hold
						open[id]++
					}
					usage += 100
					code, left = "ok", 1000-usage
				}
				want := fmt.Sprintf("%s | %s %d of 1000/hour", code, code, left)
				if got, _, _ := strings.Cut(said(s.ShouldRateLimit(t.Context(), request(list))), " in "); got != want {
					t.Fatalf("seed %d, call %d, %s: %s, want %s", seed, i, list, got, want)
				}
				if usage > 1500 { // debt is bounded, and the list does not know by what
					break
				}
			}
		}
	})
}

// 100 requests of one client at once, as in envoyproxy/ai-gateway#680: what is allowed never uses more than the limit. If the first call
// only looks, it does.
func TestHundredAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, a, b *Service) {
		clients := []pb.RateLimitServiceClient{dial(t, a), dial(t, b)}
		burst := func(begin func(i int) string, end func(i int, tokens int64) string) (used, allowed int64) {
			var ready, done sync.WaitGroup
			var total, passed atomic.Int64
			start, all := make(chan struct{}), make(chan struct{})
			ready.Add(100)
			for i := range 100 {
				done.Go(func() {
					<-start
					response, err := clients[i%2].ShouldRateLimit(t.Context(), request(begin(i)))
					ready.Done()
					if err != nil {
						t.Error(err)
					}
					<-all // the streams are long, so all have asked before one ends
					tokens := int64(20 + 8*(i%11))
					if response.GetOverallCode() == pb.RateLimitResponse_OK {
						total.Add(tokens)
						passed.Add(1)
						if _, err := clients[(i+1)%2].ShouldRateLimit(t.Context(), request(end(i, tokens))); err != nil {
							t.Error(err)
						}
					}
				})
			}
			close(start)
			ready.Wait()
			close(all)
			done.Wait()
			return total.Load(), passed.Load()
		}
		begin := func(i int) string { return fmt.Sprintf("user=held,request_id=%d x0", i) }
		end := func(i int, tokens int64) string {
			return fmt.Sprintf("user=held,request_id=%d,phase=done x%d", i, tokens)
		}
		look := func(int) string { return "always=a x0" }
		charge := func(_ int, tokens int64) string { return fmt.Sprintf("always=a x%d", tokens) }
		used, rounds := int64(0), 0
		for allowed := int64(1); allowed > 0; rounds++ {
			var more int64
			if more, allowed = burst(begin, end); rounds == 0 && allowed != 10 {
				t.Errorf("%d requests were allowed at once, want 10", allowed)
			}
			used += more
		}
		if used > 1000 || used <= 900 {
			t.Errorf("%d tokens of 1000 were used in %d rounds", used, rounds)
		}
		if used, allowed := burst(look, charge); used <= 1000 || allowed != 100 {
			t.Errorf("without holds, %d requests used %d tokens of 1000, so this test shows nothing", allowed, used)
		}
	})
}

// counting is a store that counts its calls about holds.
type counting struct {
	weir.HoldStore
	calls atomic.Int64
}

func (c *counting) Reserve(ctx context.Context, dst []weir.Decision, r weir.Reservation, ops ...weir.Op) ([]weir.Decision, error) {
	c.calls.Add(1)
	return c.HoldStore.Reserve(ctx, dst, r, ops...)
}

func (c *counting) Settle(ctx context.Context, s weir.Settlement) (weir.Settled, error) {
	c.calls.Add(1)
	return c.HoldStore.Settle(ctx, s)
}

// A client that chooses ids can make neither more work nor more room of them than of its requests.
func TestHostileIDs(t *testing.T) {
	store := &counting{HoldStore: memory.New(memory.Options{})}
	s := serviceOn(t, store, strings.ReplaceAll(logFile, "algorithm: sliding_log, requests_per_unit: 1000", "requests_per_unit: 4000000000"))
	ask := func(list string) {
		t.Helper()
		if got := said(s.ShouldRateLimit(t.Context(), request(list))); !strings.HasPrefix(got, "ok") {
			t.Fatalf("%.100s: %s", list, got)
		}
	}
	for _, id := range []string{"same", strings.Repeat("x", MaxText), "\xff\x00|=\\"} {
		for range 3 {
			for range 200 {
				ask("user=a,request_id=" + id)
			}
			for range 200 {
				ask("user=a,request_id=" + id + ",phase=done")
			}
		}
	}
	const requests = 3 * 3 * 400
	if n := store.calls.Load(); n > 3*requests {
		t.Errorf("%d calls with one id took %d calls of the store", requests, n)
	}
	// What one client sends cannot end the hold of another one, whatever the parts of its list are.
	b := newBench(t, holdFile, Options{})
	b.run(t, step{request("user=a,tokens=,request_id=1"), "ok | ok 60 of 100/hour in 3599s"})
	for _, list := range []string{"user=a|tokens,tokens=,request_id=1", "user=b,tokens=a,request_id=1", "user=a\x00,tokens=,request_id=1", "user=a,tokens=1,request_id="} {
		b.run(t, step{request(list + ",phase=done x0"), map[bool]string{true: "ok | ok 100 of 100/hour in 3599s", false: "ok | ok 0"}[strings.HasSuffix(list, "=")]})
	}
	b.run(t, step{request("user=a,tokens=,request_id=2"), "ok | ok 20 of 100/hour in 3599s"})
	b.run(t, step{request("user=a,tokens=,request_id=" + strings.Repeat("x", MaxText+1)), "InvalidArgument"})
	b.run(t,
		step{request("user=z,own=,request_id=b7 x40"), "ok | ok 60 of 100/hour in 3599s"},
		step{request("user=z,own=b,request_id=7,phase=done x0"), "ok | ok 0"},
		step{request("user=z,own=,request_id=c x40"), "ok | ok 20 of 100/hour in 3599s"})
	// No number of hits is too large for an end, and none gives anything back.
	b = newBench(t, holdFile, Options{})
	for _, hits := range []string{"18446744073709551615", "9223372036854775808", "9223372036854775807", "4294967296"} {
		b.run(t,
			step{request("user=" + hits + ",own=,request_id=1 x" + hits), "over | over 0 of 100/hour in 3599s"},
			step{request("user=" + hits + ",tokens=,request_id=1"), "ok | ok 60 of 100/hour in 3599s"},
			step{request("user=" + hits + ",tokens=,request_id=1,phase=done x" + hits), "ok | ok 0"},
			step{request("user=" + hits + ",tokens=,request_id=2"), "over | over 0 of 100/hour in 3599s"},
			step{request("user=" + hits + ",tokens=,request_id=2,phase=done x" + hits), "ok | ok 0"})
	}
	negative := request("user=negative,tokens=,request_id=1,phase=done x5")
	negative.Descriptors[0].IsNegativeHits = true
	b.run(t,
		step{request("user=negative,tokens=,request_id=1"), "ok | ok 60 of 100/hour in 3599s"},
		step{negative, "ok | ok 0"},
		step{negative, "ok | ok 0"},
		step{request("user=negative,tokens=,request_id=2"), "ok | ok 60 of 100/hour in 3599s"})
}

// Begins and ends of one id at once: each end ends one hold.
func TestOneIDAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, a, b *Service) {
		for _, phase := range []string{"", ",phase=done x7"} {
			var wg sync.WaitGroup
			for i := range 10 {
				wg.Go(func() {
					s := a
					if i%2 == 0 {
						s = b
					}
					if got := said(s.ShouldRateLimit(t.Context(), request("user=a,request_id=same"+phase))); !strings.HasPrefix(got, "ok") {
						t.Error(got)
					}
				})
			}
			wg.Wait()
		}
		if got := said(a.ShouldRateLimit(t.Context(), request("user=a,request_id=other"))); !strings.HasPrefix(got, "ok | ok 830 of") {
			t.Errorf("%s, want 830, because ten requests used 7 each", got)
		}
	})
}
