package stats

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
	"github.com/weirhq/weir/store/memory"
)

func TestMain(m *testing.M) {
	if be := os.Getenv(recorderURL); be != "" {
		recordUntilKilled(be)
	}
	os.Exit(testkit.Run(m))
}

// handClock is a time that tests move.
type handClock struct{ micros atomic.Int64 }

func newClock(at time.Time) *handClock {
	c := &handClock{}
	c.micros.Store(at.UnixMicro())
	return c
}

func (c *handClock) now() time.Time          { return time.UnixMicro(c.micros.Load()).UTC() }
func (c *handClock) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// desk is an engine whose verdicts are recorded, on a store that can be lost.
type desk struct {
	*Recorder
	engine *engine.Engine
	store  *losable
	clock  *handClock
	memory *archive.Memory
}

// losable is a store that fails when it is told to.
type losable struct {
	weir.Store
	lost atomic.Bool
}

var errLost = errors.New("the store is unavailable")

func (l *losable) Take(ctx context.Context, dst []weir.Decision, ops ...weir.Op) ([]weir.Decision, error) {
	if l.lost.Load() {
		return dst, errLost
	}
	return l.Store.Take(ctx, dst, ops...)
}

func newDesk(t testing.TB, rules string) *desk {
	t.Helper()
	d := &desk{clock: newClock(noon)}
	var err error
	if d.memory, err = archive.NewMemory(archive.Keep{}); err != nil {
		t.Fatal(err)
	}
	d.Recorder = newRecorder(t, Options{Archive: d.memory, Clock: d.clock.now, Instance: "here"})
	micros := func() weir.Micros { return weir.Micros(d.clock.micros.Load()) }
	d.store = &losable{Store: memory.New(memory.Options{Clock: micros})}
	if d.engine, err = engine.New(engine.Options{Store: d.store, Observers: []engine.Observer{d.Recorder}, Clock: micros}); err != nil {
		t.Fatal(err)
	}
	d.install(t, rules)
	return d
}

func newRecorder(t testing.TB, o Options) *Recorder {
	t.Helper()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (d *desk) install(t testing.TB, rules string) {
	t.Helper()
	table := tableOf(t, rules)
	d.engine.Install(table, 1)
}

func tableOf(t testing.TB, rules string) *rule.Table {
	t.Helper()
	set, problems := rule.Parse("test.yaml", []byte(rules))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

var alice = rule.Request{User: "alice", IP: netip.MustParseAddr("203.0.113.7"), Method: "GET", Path: "/api/x"}

// check asks the engine n times.
func (d *desk) check(t testing.TB, req rule.Request, n int) {
	t.Helper()
	var v engine.Verdict
	for range n {
		if err := d.engine.Check(t.Context(), &req, &v); err != nil {
			t.Fatal(err)
		}
	}
}

// pass lets time pass, second by second, as Run would.
func (d *desk) pass(seconds int) {
	for range seconds {
		d.clock.advance(time.Second)
		d.tick(d.clock.now())
		d.sendAll(context.Background())
	}
}

// flush makes everything readable.
func flush(t testing.TB, r *Recorder) {
	t.Helper()
	if err := r.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}
