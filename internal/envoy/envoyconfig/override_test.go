package envoyconfig

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

func TestOverride(t *testing.T) {
	d := read(t, "domain: d\non_failure: closed").Domain("d")
	for _, c := range []struct {
		n          uint32
		unit       Unit
		multiplier uint32
		want       string
	}{
		{5, Minute, 0, "fixed_window 5/1m closed"}, {5, Second, 30, "fixed_window 5/30s closed"}, {7, Month, 1, "fixed_window 7/30d closed"},
		{0, Day, 0, "denies"}, {5, Year, 10, "fixed_window 5/3650d closed"},
		{5, Unknown, 0, "envoy: the limit of a descriptor has the unknown unit 0; send SECOND to YEAR"},
		{5, Unit(99), 0, "envoy: the limit of a descriptor has the unknown unit 99; send SECOND to YEAR"},
		{5, Year, 11, "envoy: the limit of a descriptor is for 11 times a year, which is longer than ten years; send a shorter one"},
	} {
		n, err := d.Override(&Query{}, c.n, c.unit, c.multiplier)
		var got string
		switch {
		case err != nil:
			got = err.Error()
		case n.Denies():
			got = "denies"
		default:
			terms := n.Terms(false, false)
			got = fmt.Sprintf("%s %s", terms.Limits[0].Limit(), terms.Rule.OnFailure)
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c, got, c.want)
		}
	}
	one, _ := d.Override(&Query{}, 5, Minute, 0)
	if two, _ := d.Override(&Query{}, 5, Minute, 0); one != two {
		t.Error("the same limit is made twice")
	}
}

// Requests cannot fill the memory with limits.
func TestOverridesAreBounded(t *testing.T) {
	d := read(t, "domain: d").Domain("d")
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range maxOverrides/2 + 10 {
				if _, err := d.Override(&Query{}, uint32(g*maxOverrides+i+1), Hour, 0); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := len(d.overrides); n > maxOverrides {
		t.Errorf("%d are kept", n)
	}
}

// The terms say whether denied requests count, where that can be, and who only watches.
func TestTerms(t *testing.T) {
	d := read(t, `
domain: d
descriptors:
  - {key: plain, rate_limits: [{unit: day, requests_per_unit: 1}, {unit: day, requests_per_unit: 1, algorithm: token_bucket}]}
  - {key: shadow, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: quota, quota_mode: true, on_failure: local, rate_limit: {unit: day, requests_per_unit: 1}}
`).Domain("d")
	for key, mode := range map[string]rule.Mode{"plain": rule.Enforce, "shadow": rule.Shadow, "quota": rule.Shadow} {
		n := d.Find(query(key))
		for _, counting := range []bool{false, true} {
			terms := n.Terms(counting, false)
			if r := terms.Rule; r.Mode != mode || r.CountDenied != counting || r.ID != "envoy:d."+key {
				t.Errorf("%s: %+v", key, r)
			}
			if n.Terms(counting, true).Rule.Mode != rule.Shadow {
				t.Errorf("%s: who watches has a say", key)
			}
			for _, l := range terms.Limits {
				want := counting && l.Algorithm() == weir.FixedWindow
				if limit := l.Limit(); limit.CountDenied != want || limit.Name != "@envoy" || limit.Period != 24*time.Hour {
					t.Errorf("%s: %+v", key, limit)
				}
			}
		}
	}
}
