package stats

import (
	"math"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/stats/archive"
)

// With 850 requests in a second, 5 of them with errors, the error rate is 0.59 %. The
// percentiles are known without a list of all response times.
func TestErrorRateAndLatency(t *testing.T) {
	d := newDesk(t, someRules)
	v := &engine.Verdict{Allowed: true}
	for i := range 850 {
		d.Observe(&alice, v, time.Microsecond)
		status := 200
		if i < 5 {
			status = 500
		}
		d.ObserveUpstream("shop", status, time.Duration(i+1)*time.Millisecond, nil)
	}
	d.pass(1)
	s, err := d.Series(t.Context(), Query{From: noon, To: noon.Add(time.Second)})
	if err != nil || len(s.Points) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	p := s.Points[0]
	if p.Rate != 850 || p.Upstream.Errors != 5 || math.Abs(p.Upstream.ErrorShare-5.0/850) > 1e-12 {
		t.Errorf("%+v", p)
	}
	if p99 := p.Upstream.Latency.P99; p99 < 842*time.Millisecond || p99 > 842*time.Millisecond*9/8 {
		t.Errorf("p99 is %v", p99)
	}
}

// By default, seconds are kept for an hour, minutes for a day, hours for 30 days, and
// days for a year. A minute is the sum of its seconds.
func TestDefaultRetention(t *testing.T) {
	d := newDesk(t, someRules)
	want := []archive.Level{{Step: 1, Keep: 3600}, {Step: 60, Keep: 86400}, {Step: 3600, Keep: 30 * 86400}, {Step: 86400, Keep: 366 * 86400}}
	for i, l := range d.memory.Levels(archive.Series) {
		if l != want[i] {
			t.Errorf("level %d is %+v, want %+v", i, l, want[i])
		}
	}
	v := &engine.Verdict{Allowed: true}
	for i := range 60 {
		for range i {
			d.Observe(&alice, v, time.Microsecond)
		}
		d.pass(1)
	}
	for level := range want {
		slots, err := d.memory.Read(t.Context(), archive.Series, level, noon.Unix(), noon.Unix()+60)
		if err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		for _, s := range slots {
			total += s.Frame.Requests.Total()
		}
		if total != 59*60/2 {
			t.Errorf("level %d has %d", level, total)
		}
	}
}
