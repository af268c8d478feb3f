package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/weirhq/weir"
)

// These are for profiling; make bench compares with others.
func BenchmarkTake(b *testing.B) {
	for _, n := range []int{1, 1000, 1_000_000} {
		for _, text := range []string{"token_bucket 1000000/30d", "fixed_window 1000000/30d", "sliding_window 1000000/30d"} {
			b.Run(fmt.Sprintf("%d keys/%s", n, text), func(b *testing.B) {
				s := New(Options{MaxKeys: 2 * n})
				limiter, err := weir.NewLimiter(s, weir.MustCompile(text).Limit())
				if err != nil {
					b.Fatal(err)
				}
				keys := make([]string, n)
				for i := range keys {
					keys[i] = fmt.Sprintf("user:%010d", i)
					limiter.Allow(b.Context(), keys[i])
				}
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					ctx, i := context.Background(), rand.IntN(n)
					for pb.Next() {
						if i += 7919; i >= n {
							i %= n
						}
						limiter.Allow(ctx, keys[i])
					}
				})
			})
		}
	}
}

// BenchmarkHold compares a take with a hold that is reserved and settled. CPU time is what
// tells on a busy machine.
func BenchmarkHold(b *testing.B) {
	const cost = 10
	for name, do := range map[string]func(l *weir.Limiter, key string) (weir.Decision, error){
		"take": func(l *weir.Limiter, key string) (weir.Decision, error) {
			return l.Take(context.Background(), key, cost)
		},
		"half":   holding(cost / 2),
		"double": holding(2 * cost),
	} {
		for _, text := range []string{"token_bucket 1000000000/1h", "sliding_window 1000000000/1h"} {
			b.Run(name+"/"+text, func(b *testing.B) {
				l, err := weir.NewLimiter(New(Options{MaxKeys: 1 << 24}), weir.MustCompile(text).Limit())
				if err != nil {
					b.Fatal(err)
				}
				keys := make([]string, 10_000)
				for i := range keys {
					keys[i] = fmt.Sprintf("user:%010d", i)
					l.Allow(b.Context(), keys[i])
				}
				b.ReportAllocs()
				b.ResetTimer()
				before := cpuTime()
				b.RunParallel(func(pb *testing.PB) {
					for i := rand.IntN(len(keys)); pb.Next(); i = (i + 7919) % len(keys) {
						if d, err := do(l, keys[i]); err != nil || !d.Allowed {
							b.Error(d, err)
						}
					}
				})
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

func holding(used int64) func(l *weir.Limiter, key string) (weir.Decision, error) {
	return func(l *weir.Limiter, key string) (weir.Decision, error) {
		h, d, err := l.Reserve(context.Background(), key, 10, 0)
		if err == nil && d.Allowed {
			_, err = h.Settle(context.Background(), used)
		}
		return d, err
	}
}

func cpuTime() int64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}
