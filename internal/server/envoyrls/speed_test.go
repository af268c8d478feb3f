package envoyrls

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/store/memory"
)

const speedFile = `
domain: d
descriptors:
  - key: user
    descriptors:
      - {key: requests, rate_limit: {unit: hour, requests_per_unit: 4000000000}}
      - {key: tokens, hold: {id: request_id, end: {phase: done}}, reserve: 4000, rate_limit: {unit: hour, requests_per_unit: 4000000000}}
`

// BenchmarkHolds compares the calls that begin and end a hold with one that charges, over gRPC. The three take turns, so that all have the
// same of what else the machine does; the medians are compared.
func BenchmarkHolds(b *testing.B) {
	for _, name := range []string{"memory", "redis"} {
		for _, callers := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/%d", name, callers), func(b *testing.B) {
				var store weir.Store = memory.New(memory.Options{})
				if name == "redis" {
					store = openRedis(b, "redis://"+testredis.Start(b).Addr)
				}
				benchmarkHolds(b, dial(b, serviceOn(b, store, speedFile)), callers)
			})
		}
	}
}

func benchmarkHolds(b *testing.B, client pb.RateLimitServiceClient, callers int) {
	lists := [...]string{"user=%d,requests=", "user=%d,tokens=,request_id=4f1c2b6e-8d0a-4c55-9a7e-%012d", "user=%d,tokens=,request_id=4f1c2b6e-8d0a-4c55-9a7e-%012d,phase=done x1500"}
	all := [len(lists)][]time.Duration{}
	for i := range all {
		all[i] = make([]time.Duration, b.N)
	}
	var next atomic.Int64
	var running sync.WaitGroup
	b.ResetTimer()
	for range callers {
		running.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= b.N {
					return
				}
				for i, list := range lists {
					args := [...]any{n % 1000, n}
					req := request(fmt.Sprintf(list, args[:min(len(args), i+1)]...))
					began := time.Now()
					if got := said(client.ShouldRateLimit(b.Context(), req)); got[:2] != "ok" {
						b.Error(got)
						return
					}
					all[i][n] = time.Since(began)
				}
			}
		})
	}
	running.Wait()
	var medians [len(lists)]float64
	for i := range all {
		slices.Sort(all[i])
		medians[i] = float64(all[i][b.N/2])
	}
	b.ReportMetric(medians[0]/1e3, "µs/charge")
	b.ReportMetric(medians[1]/medians[0], "begin÷charge")
	b.ReportMetric(medians[2]/medians[0], "end÷charge")
}
