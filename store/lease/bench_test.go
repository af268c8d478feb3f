package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/store/memory"
)

// BenchmarkLocal compares a check on leased units with one of the memory store. CPU time is what
// tells on a busy machine.
func BenchmarkLocal(b *testing.B) {
	for _, keys := range []int{1, 1000} {
		for _, of := range []string{"memory", "lease"} {
			b.Run(fmt.Sprintf("%d keys/%s", keys, of), func(b *testing.B) {
				var store weir.Store = memory.New(memory.Options{})
				if of == "lease" {
					s := New(newReference(wallNow), Options{})
					defer s.Close(context.Background())
					store = s
				}
				l, err := weir.NewLimiter(store, weir.MustParseLimit("1000000000000/30d"))
				if err != nil {
					b.Fatal(err)
				}
				names := make([]string, keys)
				for i := range names {
					names[i] = fmt.Sprintf("user:%010d", i)
					for range 3 {
						l.Allow(b.Context(), names[i])
					}
				}
				b.ReportAllocs()
				b.ResetTimer()
				before := cpuTime()
				b.RunParallel(func(pb *testing.PB) {
					ctx, i := context.Background(), rand.IntN(keys)
					for pb.Next() {
						if i += 7919; i >= keys {
							i %= keys
						}
						l.Allow(ctx, names[i])
					}
				})
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
				if s, ok := store.(*Store); ok {
					b.ReportMetric(float64(s.Stats().Local)/float64(b.N), "local/all")
				}
			})
		}
	}
}

func cpuTime() int64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}
