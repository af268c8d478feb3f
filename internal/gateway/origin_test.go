package gateway

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var errRefused = errors.New("connection refused")

func TestPause(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 5: 16 * time.Second, 6: maxPause, 100: maxPause, 1 << 40: maxPause,
	} {
		if got := pause(time.Second, failures); got != want {
			t.Errorf("after %d failures %v, want %v", failures, got, want)
		}
	}
	if got := pause(time.Hour, 1); got != maxPause {
		t.Errorf("a long first pause is %v", got)
	}
}

// An upstream that is unavailable is tried by one request at a time, less and less often, and
// is back at once when it answers.
func TestBackoff(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	r := tableFor(t, "http://a,http://b").routes[0]
	a, b := r.targets[0], r.targets[1]
	const first = time.Second
	now := instant(time.Hour)
	a.failed(now, first, false, logger, errRefused)
	for range 5 {
		a.failed(now, first, false, logger, errRefused) // they were under way together
	}
	for n, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		want *= time.Second
		for range 10 {
			if c, ok := r.pick(now+want-1, first, nil); !ok || c.target != b || c.claimed || c.out {
				t.Fatalf("failure %d: a request went to an upstream that is left out", n)
			}
		}
		now += want
		tried := 0
		for range 10 {
			if c, ok := r.pick(now, first, nil); !ok || c.out {
				t.Fatalf("failure %d: no upstream was chosen", n)
			} else if c.claimed {
				tried++
				a.failed(now, first, true, logger, errRefused)
			}
		}
		if tried != 1 {
			t.Fatalf("failure %d: %d requests tried it", n, tried)
		}
	}
	now += maxPause
	if !a.claim(now, first) || a.claim(now, first) {
		t.Error("not one request could claim it")
	}
	a.reached(logger)
	if !a.well(now) || a.until.Load() != 0 {
		t.Error("it is not back")
	}
	a.failed(now, first, false, logger, errRefused)
	if a.well(now+first-1) || !a.well(now+first) {
		t.Error("its past was held against it")
	}
	if got := strings.Count(log.String(), "\n"); got != 3 {
		t.Errorf("the log has %d lines, want away, back, away:\n%s", got, &log)
	}
}

// An upstream that comes and goes does not fill the log.
func TestFlappingIsQuiet(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	o := tableFor(t, "http://a").origins[0]
	for i := range 1000 {
		now := instant(i+1) * 10 * time.Millisecond // ten seconds in all
		o.failed(now, 1, false, logger, errRefused)
		o.reached(logger)
	}
	if got := strings.Count(log.String(), "\n"); got > 4 {
		t.Errorf("the log has %d lines", got)
	}
}

// If no upstream is available, exactly one is tried.
func TestAllAway(t *testing.T) {
	r := tableFor(t, "http://a,http://b").routes[0]
	log := slog.New(slog.DiscardHandler)
	r.targets[0].failed(10, time.Second, false, log, errRefused)
	r.targets[1].failed(5, time.Second, false, log, errRefused)
	c, ok := r.pick(20, time.Second, nil)
	if !ok || c.target != r.targets[1] || !c.out {
		t.Errorf("%+v, want the one whose time is over next", c)
	}
	if _, ok := r.pick(20, time.Second, []*target{c.target}); ok {
		t.Error("a second one was tried")
	}
	if got := c.wait(20); got != time.Second {
		t.Errorf("the client is told to wait %v", got)
	}
}

// The least busy is chosen, and equals take turns.
func TestBalance(t *testing.T) {
	r := tableFor(t, "http://a,http://b,http://c").routes[0]
	count := map[string]int{}
	for range 300 {
		c, _ := r.pick(1, time.Second, nil)
		count[c.name]++
	}
	for name, n := range count {
		if n != 100 {
			t.Errorf("%s got %d of 300", name, n)
		}
	}
	r.targets[0].inFlight.Store(5)
	r.targets[1].inFlight.Store(4)
	r.targets[2].inFlight.Store(5)
	for range 10 {
		if c, _ := r.pick(1, time.Second, nil); c.target != r.targets[1] {
			t.Errorf("%s was chosen, which has more to do", c.name)
		}
	}
	r.targets[1].down.Store(true)
	for range 10 {
		if c, _ := r.pick(1, time.Second, nil); c.target == r.targets[1] {
			t.Error("one was chosen that is not well")
		}
	}
}

// Whatever has happened to upstreams, a request finds one; one that is well before one
// that is not; and none twice.
func TestPickAlways(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	rapid.Check(t, func(t *rapid.T) {
		texts := []string{"http://a", "http://b", "http://c", "http://d"}[:rapid.IntRange(1, 4).Draw(t, "upstreams")]
		route, err := ParseRoute(strings.Join(texts, ","))
		if err != nil {
			t.Fatal(err)
		}
		tab, err := newTable([]Route{route})
		if err != nil {
			t.Fatal(err)
		}
		r, now := tab.routes[0], instant(0)
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			now += time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond
			u := r.targets[rapid.IntRange(0, len(texts)-1).Draw(t, "which")]
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				u.failed(now, time.Second, rapid.Bool().Draw(t, "claimed"), log, errRefused)
			case 1:
				u.reached(log)
			case 2:
				u.down.Store(rapid.Bool().Draw(t, "down"))
			case 3:
				u.inFlight.Store(int64(rapid.IntRange(0, 9).Draw(t, "load")))
			}
		}
		well := 0
		for _, u := range r.targets {
			if u.well(now) {
				well++
			}
		}
		var tried []*target
		for {
			c, ok := r.pick(now, time.Second, tried)
			if !ok {
				break
			}
			if contains(tried, c.target) {
				t.Fatal("one was chosen twice")
			}
			if c.out != (well == 0) {
				t.Fatalf("%d are well, and the choice is %+v", well, c)
			}
			tried = append(tried, c.target)
		}
		if want := max(well, 1); len(tried) != want {
			t.Fatalf("%d were tried, want %d", len(tried), want)
		}
	})
}

// Of many at once, one finds out whether a lost upstream is back.
func TestClaimRace(t *testing.T) {
	r := tableFor(t, "http://a,http://b").routes[0]
	r.targets[0].failed(1, time.Second, false, slog.New(slog.DiscardHandler), errRefused)
	now := instant(2 * time.Second)
	claims := make(chan bool, 100)
	var all sync.WaitGroup
	for range cap(claims) {
		all.Go(func() {
			c, ok := r.pick(now, time.Second, nil)
			claims <- ok && c.claimed
		})
	}
	all.Wait()
	close(claims)
	n := 0
	for claimed := range claims {
		if claimed {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d requests claimed it", n)
	}
}
