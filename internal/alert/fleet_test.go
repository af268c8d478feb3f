package alert

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/archiveredis"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

func newMemory(t testing.TB) *archive.Memory {
	t.Helper()
	m, err := archive.NewMemory(archive.Keep{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newSource(t testing.TB, a archive.Store, clock func() time.Time) *stats.Recorder {
	t.Helper()
	r, err := stats.New(stats.Options{Archive: a, Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fleet is instances of weir that share a Redis, on a clock that tests move.
type fleet struct {
	t      *testing.T
	server *testredis.Server
	now    time.Time
}

func newFleet(t *testing.T) *fleet {
	return &fleet{t: t, server: testredis.Start(t), now: noon}
}

// add is another instance. Messages stay in its outbox.
func (f *fleet) add() *Watcher {
	f.t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{f.server.Addr}, DisableCache: true, DisableRetry: true})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(client.Close)
	a, err := archiveredis.Open(redislink.Given(client), archiveredis.Options{Timeout: 10 * time.Second}) // a busy machine is slow
	if err != nil {
		f.t.Fatal(err)
	}
	clock := func() time.Time { return f.now }
	w, err := New(Options{
		Source: newSource(f.t, a, clock), Clock: clock, Notifiers: []Notifier{&receiver{}}, Logger: slog.New(slog.DiscardHandler),
		Checks: []Check{{Kind: Denied, Window: 10 * time.Second, Hold: 10 * time.Second, Cooldown: 10 * time.Second}},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return w
}

// minute tells instances of a minute, in which many or no requests were denied.
func (f *fleet) minute(bad bool, all ...*Watcher) {
	frame := traffic(1000, func(f *archive.Frame) {
		if bad {
			f.Requests.Denied = 500
		}
	})
	for range 60 {
		for _, w := range all {
			w.takeSecond(f.t.Context(), stats.Live{Time: f.now, Frame: frame})
		}
		f.now = f.now.Add(time.Second)
	}
}

// wait shares until the archive answers.
func (f *fleet) wait(all ...*Watcher) {
	f.t.Helper()
	for _, w := range all {
		deadline := time.Now().Add(2 * time.Minute)
		for err := w.list.share(f.t.Context()); err != nil; err = w.list.share(f.t.Context()) {
			if time.Now().After(deadline) {
				f.t.Fatal(err)
			}
		}
	}
}

func (f *fleet) silence(w *Watcher, id string, d time.Duration) error {
	return w.List().Silence(f.t.Context(), Silence{ID: id, Until: f.now.Add(d), Author: "alice", Comment: "we <know>"})
}

// told is what waits to be sent.
func told(w *Watcher) string {
	to := w.recipients[0]
	for send := to.alerts.takeMessage(); send != nil; send = to.alerts.takeMessage() {
		if err := send(context.Background()); err != nil {
			return err.Error()
		}
	}
	var all []string
	r := to.Notifier.(*receiver)
	for _, a := range slices.Concat(r.got...) {
		all = append(all, string(a.State)+" "+a.ID)
	}
	r.got = nil
	return strings.Join(all, ", ")
}

// silent is which silences an instance knows.
func silent(w *Watcher) string {
	var all []string
	for _, s := range w.List().Silences() {
		all = append(all, s.ID)
	}
	return strings.Join(all, " ")
}
