package engine_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// logbook writes down what it is told of places.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

type logbookOf struct {
	*logbook
	rule string
}

func (l *logbook) Observe(*rule.Request, *engine.Verdict, time.Duration) {}
func (l *logbook) Places(rule string) engine.PlaceCounter                { return logbookOf{l, rule} }

func (l logbookOf) write(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, l.rule+" "+fmt.Sprintf(format, args...))
}

func (l logbookOf) Reach(n int64)            { l.write("reach %d", n) }
func (l logbookOf) Take()                    { l.write("take") }
func (l logbookOf) Leave(held time.Duration) { l.write("leave %v", held) }
func (l logbookOf) End(held time.Duration)   { l.write("end %v", held) }
func (l logbookOf) Hold(n int64, until weir.Micros) {
	l.write("hold %+d %v", n, until.Time().Sub(synctestBegin))
}

// synctestBegin is where the clock of a synctest bubble begins.
var synctestBegin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// read returns the lines since the last call.
func (l *logbook) read() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

func (l *logbook) must(t *testing.T, want ...string) {
	t.Helper()
	if got := l.read(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func observedFlights(t *testing.T, rules string) (*flights, *logbook) {
	t.Helper()
	clock := func() weir.Micros { return weir.MicrosOf(time.Now()) }
	book := &logbook{}
	e := testkit.Must(engine.New(engine.Options{
		Store: memory.New(memory.Options{Clock: clock}), Clock: clock, Observers: []engine.Observer{book},
	}))(t)
	t.Cleanup(e.Close)
	f := &flights{t: t, Engine: e, gate: testkit.Must(engine.NewGate(e, 0, nil))(t)}
	f.load(rules)
	return f, book
}

// A request that is served is told when it begins and when it ends, once, also if the handler
// settles itself, if the connection outlives it, and if the places were renewed.
func TestPlacesServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book := observedFlights(t, `
rules:
  - {id: api, key: user, concurrency: 2, hold_ttl: 10s}
  - {id: failures, key: user, limit: 100/1h, count: {status: 401}}
`)
		first, second := f.begin(alice), f.begin(alice)
		book.must(t, "api reach 1", "api take", "api reach 2", "api take")
		if f.begin(alice) != nil {
			t.Fatal("a third was allowed")
		}
		book.must(t)
		time.Sleep(25 * time.Second)
		synctest.Wait()
		testkit.Must(first.Settle(t.Context(), engine.Units(3)))(t)
		book.must(t)
		end(first)
		end(first)
		book.must(t, "api leave 25s")
		leave := second.Keep()
		end(second)
		book.must(t)
		time.Sleep(time.Second)
		leave()
		leave()
		book.must(t, "api leave 26s")
	})
}

// A hold has places from the reservation until its end, which tells how long they were held, once,
// or until it expires, also if it was extended.
func TestPlacesOfHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, book := observedFlights(t, "rules: [{id: api, key: user, limit: 100/1h, concurrency: 2, hold_ttl: 10s}, {id: trial, mode: shadow, key: user, concurrency: 5}]")
		reserve := func() weir.HoldID {
			t.Helper()
			testkit.OK(t, f.Reserve(t.Context(), &alice, 0, &f.v))
			return f.v.Hold
		}
		settled, cancelled := reserve(), reserve()
		first := []string{"api hold +1 10s", "trial hold +1 10s"}
		book.must(t, slices.Concat([]string{"api reach 1", "trial reach 1"}, first, []string{"api reach 2", "trial reach 2"}, first)...)
		time.Sleep(3 * time.Second)
		testkit.Must(f.Extend(t.Context(), settled, 10*time.Second))(t)
		book.must(t, "api hold -1 10s", "api hold +1 13s", "trial hold -1 10s", "trial hold +1 13s")
		testkit.Must(f.Settle(t.Context(), settled, engine.Units(7)))(t)
		book.must(t, "api hold -1 13s", "api end 3s", "trial hold -1 13s", "trial end 3s")
		testkit.Must(f.Settle(t.Context(), settled, engine.Units(7)))(t)
		book.must(t)
		time.Sleep(time.Second)
		testkit.Must(f.Cancel(t.Context(), cancelled))(t)
		book.must(t, "api hold -1 10s", "api end 4s", "trial hold -1 10s", "trial end 4s")
		late := reserve()
		book.must(t, "api reach 1", "trial reach 1", "api hold +1 14s", "trial hold +1 14s")
		time.Sleep(time.Minute)
		testkit.Must(f.Settle(t.Context(), late, engine.Units(7)))(t)
		book.must(t)
	})
}

// What a shadow rule takes for a request that is denied was never in flight.
func TestPlacesOfDenied(t *testing.T) {
	f, book := observedFlights(t, "rules: [{id: api, key: user, concurrency: 1}, {id: trial, mode: shadow, count_denied: true, key: user, algorithm: fixed_window, limit: 9/1h, concurrency: 5}]")
	defer end(f.begin(alice))
	book.must(t, "api reach 1", "trial reach 1", "api take", "trial take")
	if f.begin(alice) != nil {
		t.Fatal("a second was allowed")
	}
	for _, line := range book.read() {
		if line != "trial reach 2" { // for a moment
			t.Error(line)
		}
	}
}

// What a request leaves for others is not in flight.
func TestPlacesWithShares(t *testing.T) {
	f, book := observedFlights(t, "rules: [{id: api, key: user, concurrency: 10, shares: {low: 20%, normal: 50%}}]")
	defer end(f.begin(alice))
	book.must(t, "api reach 1", "api take")
}
