package stats

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/archiveredis"
	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

const warnRules = "rules: [{id: plan, key: user, algorithm: fixed_window, limit: 10/1h, warn: [50%, 100%]}, {id: other, match: {path: /o}, key: user, algorithm: fixed_window, limit: 2/1h, warn: 50%}]"

func (d *desk) use(t *testing.T, user, path string, n int) {
	t.Helper()
	var v engine.Verdict
	for range n {
		if err := d.engine.Check(t.Context(), &rule.Request{User: user, Path: path}, &v); err != nil {
			t.Fatal(err)
		}
	}
}

// The list has who reached what and when, newest first, and a day later still.
func TestWarnings(t *testing.T) {
	d := newDesk(t, warnRules)
	d.use(t, "alice", "/", 6)
	d.clock.advance(2 * time.Second)
	d.use(t, "bob", "/o", 1)
	d.use(t, "alice", "/", 9)
	flush(t, d.Recorder)
	list := func(q LatestQuery) (text string) {
		t.Helper()
		w, err := d.Warnings(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range w.Events {
			text += fmt.Sprintf("%d %s %s %s %d%% %d/%d %s\n", x.At.Time().Unix()-noon.Unix(), x.Rule, x.Key, x.Policy, x.Threshold, x.Used, x.Limit, x.Instance)
		}
		return text
	}
	want := "2 other user:bob 2/1h 50% 1/2 here\n2 plan user:alice 10/1h 100% 10/10 here\n0 plan user:alice 10/1h 50% 5/10 here\n"
	for _, later := range []time.Duration{0, time.Minute, time.Hour, 20 * time.Hour} {
		d.clock.advance(later)
		flush(t, d.Recorder)
		if got := list(LatestQuery{}); got != want {
			t.Errorf("%v later:\n%s\nwant\n%s", later, got, want)
		}
	}
	if got := list(LatestQuery{Rule: "other"}); got != "2 other user:bob 2/1h 50% 1/2 here\n" {
		t.Error(got)
	}
	if got := list(LatestQuery{Key: "user:alice", N: 1}); got != "2 plan user:alice 10/1h 100% 10/10 here\n" {
		t.Error(got)
	}
	for _, n := range []int{-1, MaxLatest + 1} {
		if _, err := d.Warnings(t.Context(), LatestQuery{N: n}); err == nil {
			t.Errorf("%d warnings", n)
		}
	}
}

// Many clients at once are counted, and a bounded number of them is kept and sent.
func TestManyWarnings(t *testing.T) {
	d := newDesk(t, warnRules)
	follow, err := d.Subscribe()
	if err != nil {
		t.Fatal(err)
	}
	table, _ := d.engine.Rules()
	c := table.Find("plan")
	const clients = 100_000
	for i := range clients {
		d.ObserveWarning(engine.Warning{Rule: c, Key: fmt.Sprint("user:", i), Compiled: c.Limits("", "")[0], Threshold: 50})
	}
	if n := len(d.Recorder.events.frame.Warned.List); n != archive.MaxWarnings {
		t.Errorf("%d are kept", n)
	}
	stop := run(t, d.Recorder)
	d.clock.advance(time.Second)
	live := <-follow.C
	stop()
	if live.Warned.N != clients || len(live.Warned.List) != archive.MaxWarnings {
		t.Errorf("%d of %d are sent", len(live.Warned.List), live.Warned.N)
	}
	w, err := d.Warnings(t.Context(), LatestQuery{N: MaxLatest})
	if err != nil || len(w.Events) != MaxLatest {
		t.Errorf("%d are listed, %v", len(w.Events), err)
	}
}

// Each instance lists the warnings of all.
func TestWarningsOfAll(t *testing.T) {
	server := testredis.Start(t)
	clock := newClock(noon)
	table := tableOf(t, warnRules)
	c := table.Find("plan")
	var all []*Recorder
	for i := range 2 {
		a, err := archiveredis.Open(redislink.Given(redisClient(t, server.Addr)), archiveredis.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := newRecorder(t, Options{Archive: a, Clock: clock.now, Instance: fmt.Sprint("i", i)})
		r.Install(table, 1)
		r.ObserveWarning(engine.Warning{Rule: c, Key: fmt.Sprint("user:", i), Compiled: c.Limits("", "")[0], Threshold: 50})
		flush(t, r)
		all = append(all, r)
	}
	for _, r := range all {
		w, err := r.Warnings(t.Context(), LatestQuery{})
		if err != nil || len(w.Events) != 2 || w.Events[0].Instance != "i0" || w.Events[1].Instance != "i1" || w.Local {
			t.Errorf("%+v, %v", w, err)
		}
	}
}
