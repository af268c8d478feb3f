package memory

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// BenchmarkExpireMany expires holds of many keys together. The time for each must not grow
// with their number: go test -bench ExpireMany ./store/memory.
func BenchmarkExpireMany(b *testing.B) {
	limit, err := weir.Limit{N: 10, Period: time.Hour, Release: true}.Compile()
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				s, clock := open(1 << 20)
				for i := range n {
					r := weir.Reservation{TTL: time.Minute}
					binary.BigEndian.PutUint64(r.ID[8:], uint64(i))
					if _, err := s.Reserve(b.Context(), nil, r, weir.Op{Key: fmt.Sprint(i), Limit: limit, Cost: 1}); err != nil {
						b.Fatal(err)
					}
				}
				clock.Pass(weir.Micros((2 * time.Minute).Microseconds()))
				b.StartTimer()
				if _, err := s.Peek(b.Context(), nil, weir.Op{Key: "1", Limit: limit, Cost: 10}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/hold")
		})
	}
}
