package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
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
