package overload

import (
	"math"
	"slices"
	"testing"
	"time"
)

// world is a process in virtual time. It uses the CPU in proportion to the requests that are
// allowed.
type world struct {
	c    *controller
	shed Shares

	offered Shares  // CPU that requests of each priority would use, of all there is
	other   float64 // CPU that something else uses

	usage []float64 // at each step
}

const step = every

func newWorld(offered Shares) *world {
	return &world{c: newController(Limits{CPU: 0.85}), offered: offered}
}

func (w *world) run(length time.Duration) {
	w.usage = w.usage[:0]
	for range length / step {
		cpu := w.other
		var requests Shares
		for i, n := range w.offered {
			cpu += n * (1 - w.shed[i])
			requests[i] = n * 250 // 1000 requests per second are all there is
		}
		w.usage = append(w.usage, math.Min(1, cpu))
		w.shed = w.c.update(Usage{CPU: math.Min(1, cpu)}, requests, step)
	}
}

// times multiplies the load.
func (s Shares) times(load float64) Shares {
	for i := range s {
		s[i] *= load
	}
	return s
}

// requestMix is how many of 100 requests are of each priority.
var requestMix = Shares{Low: 0.4, Normal: 0.4, High: 0.15, Critical: 0.05}

// At every overload the usage comes to the limit and stays there, and only one priority is shed in
// part: those above it not at all, and those below it wholly.
func TestUsageStaysNearTheLimit(t *testing.T) {
	for _, m := range []Shares{requestMix, {Normal: 1}, {Low: 1}, {Low: 0.9, Critical: 0.1}} {
		for _, load := range []float64{0.5, 0.8, 1, 1.2, 2, 5, 10} {
			w := newWorld(m.times(load))
			w.run(20 * time.Second)
			w.run(20 * time.Second)
			critical := m[Critical] * load
			for i, u := range w.usage {
				if want := math.Max(0.85, critical); load > 1 && math.Abs(u-want) > 0.05 {
					t.Fatalf("%v × %v: usage %.2f at step %d, want %.2f", m, load, u, i, want)
				}
			}
			if load < 0.85 && w.shed != (Shares{}) {
				t.Errorf("%v × %v: %v is shed", m, load, w.shed)
			}
			if w.shed[Critical] != 0 {
				t.Errorf("%v × %v: critical requests are shed", m, load)
			}
			for p := Normal; p <= High; p++ {
				if w.shed[p] > 0 && w.shed[p-1] < 1 {
					t.Errorf("%v × %v: %v", m, load, w.shed)
				}
			}
		}
	}
}

// How long it takes from the first moment of an overload until the usage is at its limit, and
// from its end until nothing is shed.
func TestHowLongItTakes(t *testing.T) {
	for _, c := range []struct {
		load     float64
		at, back time.Duration
	}{{2, 4 * time.Second, 3 * time.Second}, {5, 6 * time.Second, 4 * time.Second}, {10, 8 * time.Second, 6 * time.Second}} {
		w := newWorld(requestMix.times(0.5))
		w.run(10 * time.Second)
		w.offered = requestMix.times(c.load)
		w.run(c.at)
		if u := w.usage[len(w.usage)-1]; u > 0.95 {
			t.Errorf("load %v: usage %.2f after %v", c.load, u, c.at)
		}
		least := slices.Min(w.usage) // it must not shed too much, either
		w.run(20 * time.Second)
		if least = min(least, slices.Min(w.usage)); least < 0.7 {
			t.Errorf("load %v: usage falls to %.2f", c.load, least)
		}
		w.offered = requestMix.times(0.5)
		w.run(c.back)
		if w.shed != (Shares{}) {
			t.Errorf("load %v: %v is shed %v after it", c.load, w.shed, c.back)
		}
	}
}

// One garbage collection, with all processors for 300 ms, is no reason.
func TestOneGarbageCollection(t *testing.T) {
	w := newWorld(requestMix.times(0.5))
	w.run(10 * time.Second)
	for _, w.other = range []float64{0.5, 0.1, 0, 0, 0, 0} {
		w.run(step)
		if w.shed != (Shares{}) {
			t.Fatalf("%v is shed", w.shed)
		}
	}
}

// If something else uses the CPU, everything but critical requests is shed in the end, and all
// are back soon after it has ended.
func TestSomethingElse(t *testing.T) {
	w := newWorld(Shares{Low: 0.5})
	w.other = 1
	w.run(time.Hour)
	w.other = 0
	if w.run(7 * time.Second); w.shed != (Shares{}) {
		t.Errorf("%v is still shed", w.shed)
	}
	w = newWorld(requestMix.times(0.5))
	w.other = 1
	w.run(time.Minute)
	if w.shed[Critical] != 0 || w.shed[High] < 0.9 || w.shed[Normal] < 1 || w.shed[Low] < 1 {
		t.Errorf("%v", w.shed)
	}
	w.other = 0
	w.run(7 * time.Second)
	if w.shed != (Shares{}) {
		t.Errorf("%v is still shed", w.shed)
	}
}

// Of memory, being over the limit is what counts, by however little.
func TestMemory(t *testing.T) {
	c := newController(Limits{CPU: 0.85, Memory: 0.9})
	var shed Shares
	for range 60 * time.Second / step {
		shed = c.update(Usage{CPU: 0.1, Memory: 0.93}, requestMix.times(100), step)
	}
	if shed[Low] < 1 || shed[Normal] < 0.5 {
		t.Errorf("%v", shed)
	}
	c.limits.Memory = 0
	for range 7 * time.Second / step {
		shed = c.update(Usage{CPU: 0.1, Memory: 1}, requestMix.times(100), step)
	}
	if shed != (Shares{}) {
		t.Errorf("%v without a limit", shed)
	}
}

// Nothing to compute with, or nonsense, changes nothing.
func TestNothing(t *testing.T) {
	c := newController(Limits{CPU: 0.85})
	for _, passed := range []time.Duration{0, -time.Second, time.Hour, 1} {
		if shed := c.update(Usage{}, Shares{}, passed); shed != (Shares{}) {
			t.Errorf("%v after %v", shed, passed)
		}
	}
	for range 100 {
		if shed := c.update(Usage{CPU: 1e9}, Shares{}, time.Second); shed[Critical] != 0 {
			t.Errorf("%v", shed)
		}
	}
	if !(c.allowed > 0 && c.allowed < 0.01) {
		t.Error(c.allowed)
	}
}
