package tally

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var begin = time.Unix(1_700_000_000, 0)

func at(d time.Duration) time.Time { return begin.Add(d) }

func must(t *testing.T, c *Expiring, now time.Duration, n int64, area time.Duration) {
	t.Helper()
	if gotN, gotArea := c.Take(at(now)); gotN != n || gotArea != area {
		t.Errorf("after %v: %d and %v, want %d and %v", now, gotN, gotArea, n, area)
	}
}

// A thing counts until it ends, or until its time, rounded up to a second.
func TestCount(t *testing.T) {
	var c Expiring
	must(t, &c, 0, 0, 0)
	c.Add(1, at(500*time.Millisecond), at(10*time.Second))
	c.Add(1, at(time.Second), at(2500*time.Millisecond))
	must(t, &c, 2*time.Second, 2, 2500*time.Millisecond)
	must(t, &c, 2900*time.Millisecond, 2, 1800*time.Millisecond)
	must(t, &c, 4*time.Second, 1, 1200*time.Millisecond) // the second one has ended after 3 s
	c.Add(-1, at(5*time.Second), at(10*time.Second))
	must(t, &c, 6*time.Second, 0, time.Second)
	if len(c.due) != 0 {
		t.Errorf("%v is kept", c.due)
	}
	must(t, &c, 20*time.Second, 0, 0)
	c.Add(1, at(20*time.Second), at(20*time.Second)) // too late
	c.Add(1, at(20*time.Second), at(5*time.Second))
	must(t, &c, 21*time.Second, 0, 0)
}

// A thing that one process begins and another ends is counted once, until it ends; and neither
// keeps anything of it after its time.
func TestCountElsewhere(t *testing.T) {
	var one, other Expiring
	one.Add(1, at(time.Second), at(10*time.Second))
	other.Add(-1, at(3*time.Second), at(10*time.Second))
	must(t, &one, 5*time.Second, 1, 4*time.Second)
	must(t, &other, 5*time.Second, -1, -2*time.Second)
	must(t, &one, 12*time.Second, 0, 5*time.Second)
	must(t, &other, 12*time.Second, 0, -5*time.Second)
}

// A clock that was set back stands still until its time has come again.
func TestCountBack(t *testing.T) {
	var c Expiring
	c.Add(1, at(5*time.Second), at(10*time.Second))
	c.Add(1, at(time.Second), at(10*time.Second))
	must(t, &c, 2*time.Second, 2, 0)
	must(t, &c, 6*time.Second, 2, 2*time.Second)
}

// However beginnings and ends are spread over processes, and whenever these look, the sums are
// those of one that counts everything, and in the end nothing is left.
func TestCountSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all Expiring
		var parts [3]Expiring
		add := func(n int64, now, until time.Time) {
			all.Add(n, now, until)
			parts[rapid.IntRange(0, 2).Draw(t, "process")].Add(n, now, until)
		}
		type thing struct{ until time.Time }
		var open []thing
		var sum, want time.Duration
		now := begin
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			switch i := rapid.IntRange(0, 2).Draw(t, "what"); {
			case i == 0:
				open = append(open, thing{now.Add(time.Duration(rapid.IntRange(1, 9000).Draw(t, "ttl")) * time.Millisecond)})
				add(1, now, open[len(open)-1].until)
			case i == 1 && len(open) > 0:
				add(-1, now, open[0].until)
				open = open[1:]
			default:
				_, area := parts[rapid.IntRange(0, 2).Draw(t, "looks")].Take(now)
				sum += area
			}
		}
		for _, later := range []time.Duration{0, time.Minute} {
			n := int64(0)
			for i := range parts {
				k, area := parts[i].Take(now.Add(later))
				n, sum = n+k, sum+area
			}
			k, area := all.Take(now.Add(later))
			if want += area; n != k || sum != want || later > 0 && (n != 0 || len(all.due) != 0) {
				t.Fatalf("%d and %v, want %d and %v", n, sum, k, want)
			}
		}
	})
}
