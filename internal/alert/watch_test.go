package alert

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
	_ "github.com/weirhq/weir/rule/rulefile"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

// station is a recorder that is watched, in fake time.
type station struct {
	recorder *stats.Recorder
	table    *rule.Table
	stop     func()
}

func newStation(t *testing.T, a archive.Store) *station {
	t.Helper()
	r, err := stats.New(stats.Options{Archive: a, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := &station{recorder: r}
	s.install(t, "rules: [{id: api, key: user, limit: 10/1h}]")
	s.stop = inBackground(t, r.Run)
	return s
}

func (s *station) install(t *testing.T, rules string) {
	t.Helper()
	set, problems := rule.Parse("test.yaml", []byte(rules))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.table, err = rule.Compile(set, rule.Options{}); err != nil {
		t.Fatal(err)
	}
	s.recorder.Install(s.table, 1)
}

// inBackground runs something, and returns what ends it and waits.
func inBackground(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx); err != nil {
			t.Error(err)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// traffic makes n requests a second, of which one in ten is denied if things are bad:
// mostly of one client, and in every fourth second of others.
func (s *station) traffic(seconds, n int, bad bool) {
	v := &engine.Verdict{Results: make([]engine.Result, 1)}
	for second := range seconds {
		for i := range n {
			v.Allowed = !bad || i%10 > 0
			key := "user:eve"
			if !v.Allowed && second%4 == 0 {
				key = fmt.Sprint("user:", second%3)
			}
			v.Results[0] = engine.Result{Rule: s.table.Rules()[0], Key: key, Asked: true, Decision: weir.Decision{Allowed: v.Allowed}}
			s.recorder.Observe(&rule.Request{User: "eve"}, v, time.Millisecond)
		}
		time.Sleep(time.Second)
	}
}

func (r *receiver) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, alerts := range r.got {
		for _, a := range alerts {
			all = append(all, string(a.State)+" "+a.ID)
		}
	}
	r.got = nil
	return strings.Join(all, ", ")
}

// From requests to a message: bad times are told once, and so is their end.
func TestWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := archive.NewMemory(archive.Keep{})
		if err != nil {
			t.Fatal(err)
		}
		s := newStation(t, a)
		told := &receiver{}
		w, err := New(Options{Source: s.recorder, Notifiers: []Notifier{told}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		stop := inBackground(t, w.Run)
		s.traffic(60, 20, false)
		if got := told.take(); got != "" {
			t.Errorf("in good times: %s", got)
		}
		s.traffic(180, 20, true)
		if got := told.take(); got != "firing denied, firing hot_key:user:eve" && got != "firing hot_key:user:eve, firing denied" {
			t.Errorf("in bad times: %s", got)
		}
		if got := w.List().Active(); len(got) != 2 {
			t.Errorf("active: %+v", got)
		}

		// Another instance starts with the recorded past, and sends no alert twice.
		restarted := &receiver{}
		again, err := New(Options{Source: follower{s.recorder}, Notifiers: []Notifier{restarted}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		stopAgain := inBackground(t, again.Run)
		s.traffic(60, 20, true) // who is hot is found out again
		if got := again.List().Active(); len(got) != 2 {
			t.Errorf("active at the other: %+v", got)
		}
		if err := w.List().Silence(t.Context(), Silence{ID: "hot_key", Until: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		s.traffic(300, 20, false)
		if got := told.take(); got != "resolved denied" {
			t.Errorf("afterwards: %s", got)
		}
		if got := restarted.take(); got != "" {
			t.Errorf("the one who does not lead told %s", got)
		}
		for name, w := range map[string]*Watcher{"first": w, "other": again} {
			if len(w.List().Active()) != 0 || len(w.List().Past()) != 2 {
				t.Errorf("%s: %d active, %d past", name, len(w.List().Active()), len(w.List().Past()))
			}
		}
		if err := w.Run(t.Context()); err == nil {
			t.Error("it runs twice")
		}
		stop()
		stopAgain()
		s.stop()
	})
}

// Who is hot comes with the rule that has its key, though another one denies more. Once the address
// is blocked, neither it nor the account is hot, nor a user that is blocked: somebody has decided about
// them, and their denials are none of which another client could have a share.
func TestHot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := archive.NewMemory(archive.Keep{})
		if err != nil {
			t.Fatal(err)
		}
		s := newStation(t, a)
		defer s.stop()
		const rules = "rules: [{id: account, key: user, limit: 10/1h}, {id: address, key: ip, limit: 10/1h}]"
		s.install(t, rules)
		w, err := New(Options{Source: s.recorder, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ip := netip.MustParseAddr("192.0.2.1")
		for i := range 100 {
			s.recorder.Observe(&rule.Request{User: "alice", IP: ip}, &engine.Verdict{Results: []engine.Result{
				{Rule: s.table.Rules()[0], Key: "user:alice", Asked: true}, {Rule: s.table.Rules()[1], Key: "ip:192.0.2.1", Asked: true, Decision: weir.Decision{Allowed: i >= 60}},
			}}, time.Millisecond)
		}
		for range 10 {
			s.recorder.Observe(&rule.Request{User: "bob"}, &engine.Verdict{Results: []engine.Result{{Rule: s.table.Rules()[0], Key: "user:bob", Asked: true}}}, time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		if got := w.hot(t.Context()); *got != (Hot{Key: "ip:192.0.2.1", Rule: "address", Denied: 100, All: 110}) {
			t.Errorf("%+v", got)
		}
		s.install(t, "block: {ip: [192.0.2.0/24]}\n"+rules)
		if got := w.hot(t.Context()); *got != (Hot{Key: "user:bob", Rule: "account", Denied: 10, All: 110, Decided: 100}) {
			t.Errorf("one blocked: %+v", got)
		}
		s.install(t, "block: {ip: [192.0.2.0/24], user: [bob]}\n"+rules)
		if got := w.hot(t.Context()); *got != (Hot{All: 110, Decided: 110}) {
			t.Errorf("blocked: %+v", got)
		}
	})
}

// follower is a source whose leader is another.
type follower struct{ *stats.Recorder }

func (f follower) Archive() archive.Store { return led{f.Recorder.Archive()} }

// led is an archive that another instance leads.
type led struct{ archive.Store }

func (led) Lead(context.Context, string, time.Duration) (bool, error) { return false, nil }

func TestNewIsChecked(t *testing.T) {
	if _, err := New(Options{}); err == nil {
		t.Error("no source is accepted")
	}
}
