package redis

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testredis"
)

// A process whose clock is wrong, even by months, counts into the days and hours of
// Redis's clock, on both sides of the instant at which a zone sets its clocks.
func TestClocksDiffer(t *testing.T) {
	s := storeOn(t, clientOf(t, testredis.Start(t)), Options{})
	const month = 30 * 24 * time.Hour
	for _, change := range []struct {
		zone string
		at   string
	}{
		{"Europe/Berlin", "2025-03-30T01:00:00Z"}, {"Europe/Berlin", "2025-10-26T01:00:00Z"},
		{"Australia/Lord_Howe", "2025-04-05T15:00:00Z"}, {"Australia/Lord_Howe", "2025-10-04T15:30:00Z"}, {"America/Sao_Paulo", "2018-11-04T03:00:00Z"},
	} {
		zone, err := time.LoadLocation(change.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, change.at)
		if err != nil {
			t.Fatal(err)
		}
		for _, here := range []time.Duration{-3 * month, -time.Second, 0, time.Second, 3 * month} {
			for _, there := range []time.Duration{-time.Hour, -time.Microsecond, 0, 30 * time.Minute, 23 * time.Hour} {
				now := weir.MicrosOf(at.Add(there))
				for _, w := range counter.Windows() {
					r := &request{args: []string{itoa(int64(now)), "get", "1"}}
					s.put(r, 0, &counter.Key{Name: "k", Window: w, Zone: zone}, 0, at.Add(here))
					answer, err := s.call(t.Context(), counterScript, r.keys, r.args)
					if err != nil {
						t.Fatal(err)
					}
					var read reader
					if got, want := read.number(read.list(answer, 0), 0), w.Index(now, zone); got != want || read.err != nil {
						t.Errorf("%s: it is %v for Redis and %v here: %v %d, want %d (%v)", change.zone, at.Add(there), at.Add(here), w, got, want, read.err)
					}
				}
			}
		}
	}
}
