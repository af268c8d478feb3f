package redis

import (
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit/testredis"
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
					s.put(r, &counter.Delta{Key: counter.Key{Name: "k", Window: w, Zone: zone}}, at.Add(here))
					answer := s.call(t.Context(), counterScript, r.keys, r.args)
					if got, want := answer.List().Int(), w.Index(now, zone); got != want || answer.Err() != nil {
						t.Errorf("%s: it is %v for Redis and %v here: %v %d, want %d (%v)", change.zone, at.Add(there), at.Add(here), w, got, want, answer.Err())
					}
				}
			}
		}
	}
}

// Months and years are those of the calendar, in the script, too.
func TestMonthsInScripts(t *testing.T) {
	s := storeOn(t, clientOf(t, testredis.Start(t)), Options{})
	apia, err := time.LoadLocation("Pacific/Apia")
	if err != nil {
		t.Fatal(err)
	}
	for _, year := range []int{1970, 1999, 2000, 2001, 2004, 2011, 2024, 2099, 2100, 2101, 2200} {
		for month := time.January; month <= time.December; month++ {
			for _, zone := range []*time.Location{nil, apia} {
				start := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
				for _, at := range []time.Time{start.Add(-time.Microsecond), start, start.AddDate(0, 0, 27)} {
					now := weir.MicrosOf(at)
					r := &request{args: []string{itoa(int64(now)), "get", "1"}}
					for _, w := range []counter.Window{counter.Month, counter.Year} {
						s.put(r, &counter.Delta{Key: counter.Key{Name: "k", Window: w, Zone: zone}}, at)
					}
					answer := s.call(t.Context(), counterScript, r.keys, r.args)
					for _, w := range []counter.Window{counter.Month, counter.Year} {
						if got, want := answer.List().Int(), w.Index(now, zone); got != want || answer.Err() != nil {
							t.Errorf("%v: %v %d, want %d (%v)", at, w, got, want, answer.Err())
						}
					}
				}
			}
		}
	}
}

// A process whose clock is wrong, or has been, puts values into the windows of Redis's clock.
func TestDistributionsFollowRedis(t *testing.T) {
	var clock fake
	clock.Set(weir.MicrosOf(time.Date(2025, 8, 29, 12, 0, 0, 0, time.UTC)))
	s := storeOn(t, clientOf(t, testredis.Start(t)), Options{Clock: clock.Now})
	total := int64(0)
	for _, wrong := range []time.Duration{0, time.Second, -time.Second, 2 * time.Second, 3 * time.Minute, 90 * 24 * time.Hour, -90 * 24 * time.Hour, 800 * 24 * time.Hour} {
		for _, w := range counter.Windows() {
			k := counter.Key{Name: "k", Window: w}
			s.ahead.Store(wrong.Microseconds())
			if err := s.Observe(t.Context(), counter.Sample{Key: k, Values: []counter.Amount{counter.One}}); err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{1, 3} {
				if n > s.kept.Windows(w) {
					continue
				}
				s.ahead.Store(wrong.Microseconds())
				got, err := s.Distributions(t.Context(), n, k)
				if err != nil || got[0][n-1].Count != total+1 || !got[0][n-1].Start.Equal(w.Start(w.Index(clock.Now(), nil), nil)) {
					t.Errorf("%v off, %v: %+v, %v", wrong, w, got, err)
				}
			}
		}
		total++
	}
	if s.ahead.Store(time.Hour.Microseconds()); s.Observe(t.Context(), counter.Sample{Key: counter.Key{Name: "k", Window: counter.Second}, Values: []counter.Amount{1}}) != nil || s.ahead.Load() != 0 {
		t.Errorf("it is still thought to be ahead by %d", s.ahead.Load())
	}
}
