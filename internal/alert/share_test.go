package alert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/archiveredis"
	"github.com/weirhq/weir/stats/archive"
)

// A silence that one instance is told of holds on the one that sends, and so does its
// end; a third that is started later knows of it at once.
func TestSilenceIsShared(t *testing.T) {
	f := newFleet(t)
	leader, other := f.add(), f.add()
	f.minute(false, leader, other)
	if !leader.leads || other.leads {
		t.Fatal("not exactly the first leads")
	}
	if err := f.silence(other, "denied", time.Hour); err != nil {
		t.Fatal(err)
	}
	f.minute(true, leader, other)
	if active := leader.List().Active(); len(active) != 1 || !active[0].Silenced {
		t.Errorf("%+v", active)
	}
	want := []Silence{{ID: "denied", Until: noon.Add(61 * time.Minute), Author: "alice", Comment: "we <know>"}}
	for name, w := range map[string]*Watcher{"leader": leader, "other": other} {
		if got := w.List().Silences(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	f.minute(false, leader, other)
	if got := told(leader); got != "" {
		t.Errorf("the leader told %s", got)
	}

	if err := f.silence(other, "denied", 0); err != nil || silent(other) != "" {
		t.Errorf("%v, %s", err, silent(other))
	}
	f.minute(true, leader, other)
	if got := told(leader); got != "firing denied" || silent(leader) != "" {
		t.Errorf("after its end, the leader told %q", got)
	}
	f.minute(false, leader, other)
	if got := told(leader); got != "resolved denied" {
		t.Errorf("the leader told %q", got)
	}

	// The leader ends one that it was not told of.
	if err := errors.Join(f.silence(other, "denied", time.Hour), f.silence(leader, "denied", 0)); err != nil {
		t.Fatal(err)
	}
	f.wait(other)
	if silent(other) != "" {
		t.Error("the other is still silent")
	}

	// One that the archive has just lost is ended, too.
	if err := f.silence(other, "denied", time.Hour); err != nil {
		t.Fatal(err)
	}
	f.wait(leader)
	f.server.Do("FLUSHALL")
	if err := f.silence(other, "denied", 0); err != nil {
		t.Fatal(err)
	}
	f.wait(leader, other)
	if silent(leader) != "" || silent(other) != "" {
		t.Errorf("%q and %q are silent", silent(leader), silent(other))
	}

	if err := f.silence(leader, "hot_key:\xff", time.Hour); err != nil {
		t.Fatal(err)
	}
	third := f.add()
	over, cancel := context.WithCancel(t.Context())
	f.wait(third)
	cancel()
	if err := third.Run(over); err != nil || silent(third) != "hot_key:\xff" {
		t.Errorf("%v, %q", err, silent(third))
	}
	if got := told(other); got != "" {
		t.Errorf("who does not lead told %s", got)
	}
}

// An instance knows of what to be silent before it sends the first alert, also when it
// takes over from another.
func TestSuccessorIsSilent(t *testing.T) {
	f := newFleet(t)
	leader, next := f.add(), f.add()
	f.minute(true, leader, next)
	if got := told(leader); got != "firing denied" {
		t.Errorf("it told %q", got)
	}
	if err := f.silence(leader, "denied", time.Hour); err != nil {
		t.Fatal(err)
	}
	f.server.Do("DEL", archiveredis.DefaultPrefix+"{stats}:lead:alerts") // as if it had died
	f.minute(true, next)
	if got := told(next); got != "" || !next.leads || len(next.List().Active()) != 1 {
		t.Errorf("the next one told %q", got)
	}
}

// Redis is killed and comes back empty. What was silenced meanwhile holds where it was
// told, and everywhere afterwards; what was known before is not forgotten.
func TestRedisIsKilled(t *testing.T) {
	f := newFleet(t)
	leader, other := f.add(), f.add()
	f.minute(false, leader, other)
	if err := errors.Join(f.silence(leader, "slow", time.Hour), f.silence(leader, "drop", time.Hour), f.silence(leader, "errors", 10*time.Minute)); err != nil {
		t.Fatal(err)
	}
	f.wait(other)
	f.server.Kill()
	if err := f.silence(other, "denied", time.Hour); !errors.Is(err, ErrNotShared) {
		t.Errorf("it is not shared: %v", err)
	}
	for _, id := range []string{"slow", "unheard-of"} {
		if err := f.silence(other, id, 0); !errors.Is(err, ErrNotShared) {
			t.Errorf("the end of %s: %v", id, err)
		}
	}
	if silent(leader) != "drop errors slow" || silent(other) != "denied drop errors" {
		t.Errorf("%q and %q", silent(leader), silent(other))
	}
	f.minute(true, leader, other) // now both send
	if a, b := told(leader), told(other); a != "firing denied" || b != "" {
		t.Errorf("they told %q and %q", a, b)
	}
	f.server.Restart()
	f.wait(other, leader, other)
	for name, w := range map[string]*Watcher{"leader": leader, "other": other} {
		if silent(w) != "denied drop errors" {
			t.Errorf("%s: %q", name, silent(w))
		}
	}
	third := f.add()
	f.wait(third)
	if silent(third) != "denied drop errors" {
		t.Errorf("the third: %q", silent(third))
	}
	f.now = f.now.Add(15 * time.Minute)
	f.wait(leader, other, third)
	if silent(third) != "denied drop" || silent(leader) != "denied drop" {
		t.Errorf("later: %q", silent(third))
	}
}

// An instance that could not be told, or could not tell, does not undo what others have
// said since.
func TestOthersHaveSaidSince(t *testing.T) {
	f := newFleet(t)
	a, b := f.add(), f.add()
	f.wait(a, b)
	away := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			id, end := strings.CutPrefix(id, "-")
			d := 2 * time.Hour
			if end {
				d = 0
			}
			// The instance alone is told: Redis is not asked in a time that is over.
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if err := a.List().Silence(gone, Silence{ID: id, Until: f.now.Add(d)}); !errors.Is(err, ErrNotShared) {
				t.Fatalf("%s: %v", id, err)
			}
		}
		f.wait(b)
	}
	if err := errors.Join(f.silence(a, "slow", time.Hour), f.silence(a, "drop", time.Hour)); err != nil {
		t.Fatal(err)
	}
	f.wait(b)

	const key = archiveredis.DefaultPrefix + "{stats}:notes:" + noteKind
	before := f.server.Do("HGET", key, "slow")
	away("slow", "denied", "-drop") // no other instance has changed them
	f.wait(a, b)
	if silent(a) != "denied slow" || silent(b) != "denied slow" {
		t.Errorf("%q and %q", silent(a), silent(b))
	}
	if until := b.List().Silences()[1].Until; !until.Equal(f.now.Add(2 * time.Hour)) {
		t.Errorf("slow until %v", until)
	}
	f.server.Do("HSET", key, "slow", before) // as a replica that takes over may have it
	f.wait(a)
	if until := a.List().Silences()[1].Until; !until.Equal(f.now.Add(time.Hour)) {
		t.Errorf("slow until %v", until)
	}

	away("slow", "-denied")
	if err := errors.Join(f.silence(b, "slow", 3*time.Hour), f.silence(b, "denied", 3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	f.wait(a, b)
	for _, w := range []*Watcher{a, b} {
		all := w.List().Silences()
		if len(all) != 2 || !all[0].Until.Equal(f.now.Add(3*time.Hour)) || !all[1].Until.Equal(all[0].Until) {
			t.Errorf("%+v", all)
		}
	}
}

// There are at most a hundred silences in the archive, and while it is unavailable, a
// hundred on each instance.
func TestSilencesAreBounded(t *testing.T) {
	f := newFleet(t)
	a, b := f.add(), f.add()
	for i := range MaxSilences {
		if err := f.silence([]*Watcher{a, b}[i%2], fmt.Sprint("hot_key:", i), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.silence(a, "slow", time.Hour); !errors.Is(err, errTooMany) || strings.Contains(silent(a), "slow") {
		t.Errorf("one more: %v", err)
	}
	f.server.Kill()
	for i := range MaxSilences {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		want := Silence{ID: fmt.Sprint("drop:", i), Until: f.now.Add(time.Hour)}
		if err := a.List().Silence(gone, want); errors.Is(err, errTooMany) != (i >= MaxSilences/2) || err == nil {
			t.Fatalf("%d: %v", i, err)
		}
		want.ID, want.Until = fmt.Sprint("shadow:", i), f.now
		if err := b.List().Silence(gone, want); !errors.Is(err, ErrNotShared) {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if err := b.List().Silence(t.Context(), Silence{ID: "one more end"}); !errors.Is(err, ErrNotShared) || len(b.list.silences) != MaxSilences/2+MaxSilences {
		t.Errorf("%v, %d", err, len(b.list.silences))
	}
	f.server.Restart()
	f.wait(b) // first, so that there is room for half of what a knows
	for range 2 {
		a.list.share(t.Context()) // says that there is no room for some
	}
	f.wait(a, b)
	if n := len(a.List().Silences()); n != MaxSilences {
		t.Errorf("%d silences", n)
	}
	if silent(a) != silent(b) {
		t.Errorf("%s and %s", silent(a), silent(b))
	}
}

// Whatever is in Redis, nothing of it is taken for a silence that is none.
func TestForeignSilences(t *testing.T) {
	f := newFleet(t)
	w := f.add()
	if err := f.silence(w, "slow", time.Hour); err != nil {
		t.Fatal(err)
	}
	const key = archiveredis.DefaultPrefix + "{stats}:notes:" + noteKind
	until := strconv.FormatInt(noon.Add(time.Hour).UnixMicro(), 10)
	for id, text := range map[string]string{
		"no json": "x", "half": `{"author":`, "number": `{"author":1}`, "list": `[]`, "bytes": "\xff\x00",
		"deep":    strings.Repeat("[", 8000),
		"comment": `{"comment":"` + strings.Repeat("x", maxComment+1) + `"}`, strings.Repeat("i", maxID+1): "{}", strings.Repeat("e", maxID+1): "",
		"slow": "damaged", "null": "null", "more": `{"author":"\ud800<b>","id":"other","until":"9999-01-01T00:00:00Z","new":[]}`, "ended": "",
	} {
		f.server.Do("HSET", key, id, until+" "+text)
	}
	f.wait(w, w)
	if got := silent(w); got != "more null slow" {
		t.Errorf("%.200q", got)
	}
	if s := w.List().Silences()[0]; s.Author != "\uFFFD<b>" || !s.Until.Equal(noon.Add(time.Hour)) {
		t.Errorf("%+v", s)
	}
	for _, s := range []Silence{{ID: "x", Until: f.now.Add(2 * archive.MaxNoteTime)}, {}, {ID: strings.Repeat("x", maxID+1)}} {
		if err := w.List().Silence(t.Context(), s); err == nil || errors.Is(err, ErrNotShared) {
			t.Errorf("%.40v: %v", s, err)
		}
	}
}

// Many say many things to two instances at once, and in the end both know the same.
func TestManySilences(t *testing.T) {
	f := newFleet(t)
	all := []*Watcher{f.add(), f.add()}
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for j := range 20 {
				w := all[(i+j)%2]
				d := time.Duration((i+j)%3) * time.Hour
				if err := f.silence(w, fmt.Sprint("hot_key:", (i*j)%5), d); err != nil {
					t.Error(err)
				}
				if err := w.list.share(t.Context()); err != nil {
					t.Error(err)
				}
				w.List().Active()
			}
		})
	}
	running.Wait()
	f.wait(all...)
	if a, b := all[0].List().Silences(), all[1].List().Silences(); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%v and %v", a, b)
	}
}

// A silence survives a restart with the rest of what is kept in memory, and holds from
// the first moment on.
func TestSilenceSurvivesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		kept := newMemory(t)
		s := newStation(t, kept)
		open := func(s *station) (*Watcher, *receiver) {
			told := &receiver{}
			w, err := New(Options{Source: s.recorder, Notifiers: []Notifier{told}, Checks: []Check{{Kind: Denied}}, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			return w, told
		}
		w, told := open(s)
		stop := inBackground(t, w.Run)
		if err := w.List().Silence(t.Context(), Silence{ID: "denied", Until: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		s.traffic(180, 20, true)
		stop()
		s.stop()
		if got := told.take(); got != "" || len(w.List().Active()) != 1 {
			t.Errorf("before: %s", got)
		}
		if err := kept.Snapshot(&file); err != nil {
			t.Fatal(err)
		}

		next := newMemory(t)
		if err := next.Restore(&file); err != nil {
			t.Fatal(err)
		}
		s = newStation(t, next)
		w, told = open(s)
		stop = inBackground(t, w.Run)
		synctest.Wait() // it has read the past, and no second has passed
		if active := w.List().Active(); len(active) != 1 || !active[0].Silenced {
			t.Errorf("at once: %+v", active)
		}
		s.traffic(60, 20, true)
		if got := told.take(); got != "" {
			t.Errorf("after the restart: %s", got)
		}
		if err := w.List().Silence(t.Context(), Silence{ID: "denied"}); err != nil {
			t.Fatal(err)
		}
		s.traffic(300, 20, false)
		if got := told.take(); got != "resolved denied" {
			t.Errorf("after its end: %s", got)
		}
		stop()
		s.stop()
	})
}
