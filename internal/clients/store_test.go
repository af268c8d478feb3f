package clients

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/internal/redislink"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/rule"
)

func TestMain(m *testing.M) { testredis.VerifyMain(m) }

func redisStore(t testing.TB, addr string) *Redis {
	t.Helper()
	client := testkit.Must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true, DisableRetry: true}))(t)
	t.Cleanup(client.Close)
	return testkit.Must(NewRedis(redislink.Of(client).Client, RedisOptions{Timeout: 10 * time.Second}))(t)
}

// text is all that a registry knows.
func text(r *Registry) string {
	all := map[string]string{}
	for e := range r.Export {
		all[e.Name] = string(rule.ClientToJSON(&e.Client)) + e.Version + e.By + e.At.String()
	}
	return fmt.Sprint(all)
}

func look(t testing.TB, r *Registry) {
	t.Helper()
	if err := r.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func apply(t testing.TB, r *Registry, changes ...Change) []Outcome {
	t.Helper()
	return testkit.Must(r.Apply(t.Context(), "ann", changes))(t)
}

// draw draws a change of few names.
func draw(t testing.TB, r *rand.Rand) Change {
	name := func() string { return fmt.Sprintf("%s:%d", []string{"user", "team", "org"}[r.IntN(3)], r.IntN(8)) }
	c := put(t, fmt.Sprintf(`{"client": %q, "parent": %q, "tier": "t%d"}`, name(), name(), r.IntN(5)))
	if r.IntN(3) == 0 {
		c.Client.Parent = ""
		c.Client = client(t, string(rule.ClientToJSON(&c.Client)))
	}
	c.Delete = r.IntN(4) == 0
	return c
}

// Three instances that change one directory at the same time come to the same one, which a fourth reads. None has a cycle.
func TestInstances(t *testing.T) {
	server := testredis.Start(t)
	var all []*Registry
	for range 3 {
		all = append(all, New(Options{Store: redisStore(t, server.Addr)}))
	}
	var work sync.WaitGroup
	for i, r := range all {
		work.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 7))
			for range 60 {
				var changes []Change
				for range 1 + random.IntN(20) {
					changes = append(changes, draw(t, random))
				}
				if _, err := r.Apply(t.Context(), fmt.Sprint("writer", i), changes); err != nil && reason(err) != Busy {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	fresh := New(Options{Store: redisStore(t, server.Addr)})
	for _, r := range append(all, fresh) {
		look(t, r)
		if got := text(r); got != text(all[0]) || r.Count() == 0 {
			t.Errorf("it has %d clients:\n%s\nwant\n%s", r.Count(), got, text(all[0]))
		}
	}
	for e := range fresh.Export {
		if line := fresh.Line(e.Name); len(line) > 3 {
			t.Errorf("the line of %s has %d clients", e.Name, len(line))
		}
	}
}

func reason(err error) Reason {
	wrong, _ := errors.AsType[*Error](err)
	if wrong == nil {
		return 255
	}
	return wrong.Reason
}

// Two who make a cycle together: one of them is too late, and sees the other's change.
func TestConcurrentCycle(t *testing.T) {
	server := testredis.Start(t)
	a, b := New(Options{Store: redisStore(t, server.Addr)}), New(Options{Store: redisStore(t, server.Addr)})
	apply(t, a, put(t, `{"client": "team:x"}`), put(t, `{"client": "org:y"}`))
	look(t, b)
	if got := apply(t, a, put(t, `{"client": "team:x", "parent": "org:y"}`)); got[0].Err != nil {
		t.Fatal(got[0].Err)
	}
	if got := apply(t, b, put(t, `{"client": "org:y", "parent": "team:x"}`)); reason(got[0].Err) != Cycle {
		t.Errorf("the second is %+v", got[0])
	}
}

// One of many who have read the same version wins.
func TestOneWins(t *testing.T) {
	server := testredis.Start(t)
	first := New(Options{Store: redisStore(t, server.Addr)})
	version := apply(t, first, put(t, `{"client": "user:ann"}`))[0].Entry.Version
	var won, lost int
	for i := range 3 {
		r := New(Options{Store: redisStore(t, server.Addr)})
		look(t, r)
		c := put(t, fmt.Sprintf(`{"client": "user:ann", "tier": "t%d"}`, i))
		c.If = version
		if got := apply(t, r, c); got[0].Err == nil {
			won++
		} else if reason(got[0].Err) == Mismatch {
			lost++
		}
	}
	if won != 1 || lost != 2 {
		t.Errorf("%d won and %d lost", won, lost)
	}
}

// An instance that is cut off keeps what it knows, says so, and catches up.
func TestCutOff(t *testing.T) {
	server := testredis.Start(t)
	proxy := testredis.NewProxy(t, server)
	store := redisStore(t, proxy.Addr)
	store.poll, store.Timeout = 10*time.Millisecond, time.Second
	far, near := New(Options{Store: store}), New(Options{Store: redisStore(t, server.Addr)})
	apply(t, near, put(t, `{"client": "user:ann", "tier": "free"}`))
	ctx, cancel := context.WithCancel(t.Context())
	var follower sync.WaitGroup
	follower.Go(func() { _ = far.Follow(ctx) })
	defer follower.Wait()
	defer cancel()
	tier := func(want string) func() bool {
		return func() bool { e, _ := far.Get("user:ann"); return e.Tier == want }
	}
	eventually(t, tier("free"))
	proxy.Cut()
	apply(t, near, put(t, `{"client": "user:ann", "tier": "pro"}`))
	eventually(t, func() bool { s := far.Status(); return s.Err != nil && !s.Since.IsZero() })
	if !tier("free")() {
		t.Error("it has forgotten what it knew")
	}
	if _, err := far.Apply(t.Context(), "x", []Change{put(t, `{"client": "user:bob"}`)}); reason(err) != Unavailable {
		t.Errorf("a change without the store: %v", err)
	}
	proxy.Heal()
	eventually(t, tier("pro"))
	eventually(t, func() bool { return far.Status().Err == nil })
}

func eventually(t testing.TB, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("it does not happen")
		}
	}
}

// What a failover or a restored backup has lost is lost for all instances; a flush is not.
func TestHistories(t *testing.T) {
	server := testredis.Start(t)
	a, b := New(Options{Store: redisStore(t, server.Addr)}), New(Options{Store: redisStore(t, server.Addr)})
	apply(t, a, put(t, `{"client": "user:kept"}`))
	keys := server.List("KEYS", "weir:{clients}:*")
	for _, key := range keys {
		server.Do("COPY", key, "saved:"+key)
	}
	apply(t, a, put(t, `{"client": "user:lost"}`))
	look(t, b)
	for _, key := range keys { // the state after the first change again, and another second change
		server.Do("RENAME", "saved:"+key, key)
	}
	c := New(Options{Store: redisStore(t, server.Addr)})
	apply(t, c, put(t, `{"client": "user:other"}`)) // the second change again, and a third one
	apply(t, c, put(t, `{"client": "user:third"}`))
	for _, r := range []*Registry{a, b} {
		look(t, r)
		if _, known := r.Get("user:lost"); known || r.Count() != 3 {
			t.Errorf("it has %s", text(r))
		}
	}
	server.Do("FLUSHALL")
	if err := a.Look(t.Context()); err == nil || a.Count() != 3 || a.Status().Err == nil {
		t.Errorf("after the loss, it has %d clients: %v", a.Count(), err)
	}
	if _, err := a.Apply(t.Context(), "x", []Change{put(t, `{"client": "user:x"}`)}); reason(err) != Unavailable || !errors.Is(err, ErrLost) {
		t.Errorf("a change after the loss: %v", err)
	}
	// One instance begins again and imports what another has exported. All follow.
	var saved []Change
	for e := range a.Export {
		saved = append(saved, Change{Client: e.Client})
	}
	begun := New(Options{Store: redisStore(t, server.Addr)})
	apply(t, begun, saved...)
	for _, r := range []*Registry{a, b} {
		if look(t, r); text(r) != text(begun) || r.Count() != 3 || r.Status().Err != nil {
			t.Errorf("it has %s: %v", text(r), r.Status().Err)
		}
	}
	apply(t, a, put(t, `{"client": "user:x"}`))
}

// A part that Redis has lost alone, as by an eviction, is noticed by every instance and overwritten by none. Those that know the
// clients keep them. What is saved there can be imported again.
func TestLostPart(t *testing.T) {
	for name, lose := range map[string][]string{
		"entries":  {"UNLINK", "weir:{clients}:entries"},
		"entry":    {"HDEL", "weir:{clients}:entries", "user:2"},
		"stranger": {"HSET", "weir:{clients}:entries", "user:9", `{"serial": "1", "client": {}}`},
		"position": {"UNLINK", "weir:{clients}:position"},
		"most":     {"UNLINK", "weir:{clients}:position", "weir:{clients}:entries"},
	} {
		t.Run(name, func(t *testing.T) {
			server := testredis.Start(t)
			knows := New(Options{Store: redisStore(t, server.Addr)})
			for i := range 5 {
				apply(t, knows, put(t, fmt.Sprintf(`{"client": "user:%d"}`, i)))
			}
			gone := put(t, `{"client": "user:0"}`)
			gone.Delete = true
			apply(t, knows, gone)
			server.Do(lose...)
			fresh := New(Options{Store: redisStore(t, server.Addr)})
			for _, r := range []*Registry{knows, fresh} {
				if _, err := r.Apply(t.Context(), "x", []Change{put(t, `{"client": "user:x"}`)}); reason(err) != Unavailable || !errors.Is(err, ErrLost) {
					t.Errorf("a change after the loss: %v", err)
				}
				if err := r.Look(t.Context()); !errors.Is(err, ErrLost) || r.Status().Err == nil || r.Status().Loaded != (r == knows) {
					t.Errorf("%+v: %v", r.Status(), err)
				}
			}
			if knows.Count() != 4 || fresh.Count() != 0 {
				t.Errorf("one knows %s, the other %s", text(knows), text(fresh))
			}
			server.Do("UNLINK", "weir:{clients}:entries", "weir:{clients}:position", "weir:{clients}:changes")
			for e := range knows.Export {
				apply(t, fresh, Change{Client: e.Client})
			}
			if look(t, knows); text(knows) != text(fresh) || knows.Count() != 4 || knows.Status().Err != nil {
				t.Errorf("after an import, one knows %s, the other %s: %+v", text(knows), text(fresh), knows.Status())
			}
		})
	}
}

// A position of a version that did not count the clients is one, and gets their number by the next change.
func TestPositionWithoutCount(t *testing.T) {
	server := testredis.Start(t)
	apply(t, New(Options{Store: redisStore(t, server.Addr)}), put(t, `{"client": "user:ann"}`), put(t, `{"client": "user:bob"}`))
	server.Do("HDEL", "weir:{clients}:position", "clients")
	r := New(Options{Store: redisStore(t, server.Addr)})
	if look(t, r); r.Count() != 2 {
		t.Errorf("it has %s", text(r))
	}
	apply(t, r, put(t, `{"client": "user:eve"}`))
	if n := server.Do("HGET", "weir:{clients}:position", "clients"); n != "3" {
		t.Errorf("there are %s clients", n)
	}
}

// missing is a store whose scan misses a client a few times, as one may within a failover.
type missing struct {
	*Redis
	times int
}

func (m *missing) Load(ctx context.Context, each func(Record)) (Position, int, error) {
	m.times--
	return m.Redis.Load(ctx, func(r Record) {
		if m.times < 0 || r.Name != "user:ann" {
			each(r)
		}
	})
}

// A client that a scan has missed is not unknown: all are read again, and not used until they are complete.
func TestIncompleteScan(t *testing.T) {
	server := testredis.Start(t)
	a := New(Options{Store: redisStore(t, server.Addr)})
	apply(t, a, put(t, `{"client": "user:ann"}`), put(t, `{"client": "user:bob"}`), put(t, `{"client": "org:damaged"}`))
	server.Do("HSET", "weir:{clients}:entries", "org:damaged", `{"client": 5}`) // counts, too
	store := &missing{redisStore(t, server.Addr), 4}
	r := New(Options{Store: store})
	if err := r.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "2 of 3 clients were read") || r.Status().Loaded || r.Count() != 0 {
		t.Errorf("%v; it has %s", err, text(r))
	}
	if look(t, r); r.Count() != 2 || store.times != -1 {
		t.Errorf("it has %s; %d", text(r), store.times)
	}
}

// Who is far behind reads everything again.
func TestFarBehind(t *testing.T) {
	server := testredis.Start(t)
	a, b := New(Options{Store: redisStore(t, server.Addr)}), New(Options{Store: redisStore(t, server.Addr)})
	look(t, b)
	for i := range 3 {
		var changes []Change
		for n := range 700 {
			changes = append(changes, put(t, fmt.Sprintf(`{"client": "user:%d", "parent": "org:%d"}`, n, i)))
		}
		apply(t, a, append(changes, put(t, fmt.Sprintf(`{"client": "org:%d"}`, i)))...)
	}
	look(t, b) // in several steps
	if text(b) != text(a) {
		t.Error("the steps lead elsewhere")
	}
	apply(t, a, put(t, `{"client": "user:1", "tier": "pro"}`))
	server.Do("XTRIM", "weir:{clients}:changes", "MAXLEN", "0")
	look(t, b)
	if e, _ := b.Get("user:1"); e.Tier != "pro" || text(b) != text(a) {
		t.Errorf("user:1 is %+v", e)
	}
}

// A damaged entry is left out, and the others are there.
func TestDamagedEntry(t *testing.T) {
	server := testredis.Start(t)
	a := New(Options{Store: redisStore(t, server.Addr)})
	apply(t, a, put(t, `{"client": "user:a"}`), put(t, `{"client": "user:b"}`))
	server.Do("HSET", "weir:{clients}:entries", "user:a", `{"client": 5}`)
	var told []bool
	b := New(Options{Store: redisStore(t, server.Addr), Usable: func(is bool) { told = append(told, is) }})
	look(t, b)
	if b.Count() != 1 || b.Status().Unusable == nil {
		t.Errorf("it has %d clients: %+v", b.Count(), b.Status())
	}
	// Those below it come back with it, wherever it is mended.
	apply(t, a, put(t, `{"client": "user:a", "parent": "org:x"}`), put(t, `{"client": "org:x"}`))
	if look(t, b); text(b) != text(a) || b.Status().Unusable != nil {
		t.Errorf("%s\n%s: %+v", text(a), text(b), b.Status())
	}
	if look(t, b); !slices.Equal(told, []bool{false, true}) {
		t.Errorf("it was told that the clients can be used: %v", told)
	}
	server.Do("HSET", "weir:{clients}:entries", "org:x", `{"client": 5}`)
	c := New(Options{Store: redisStore(t, server.Addr)})
	if look(t, c); c.Count() != 1 || c.Status().Unusable == nil {
		t.Errorf("it has %s: %+v", text(c), c.Status())
	}
	apply(t, c, put(t, `{"client": "user:new"}`))
	apply(t, c, put(t, `{"client": "org:x", "tier": "pro"}`))
	apply(t, a, put(t, `{"client": "user:last"}`))
	look(t, a)
	if look(t, c); text(c) != text(a) || c.Status().Unusable != nil {
		t.Errorf("%s\n%s: %+v", text(a), text(c), c.Status())
	}
}

// A journal brings back what was acknowledged, wherever the last batch of changes was torn.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clients.ndjson")
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	open := func() *Registry {
		log.Reset()
		j := NewJournal(path, logger)
		t.Cleanup(j.Close)
		r := New(Options{Store: j})
		look(t, r)
		return r
	}
	r := open()
	random := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		apply(t, r, draw(t, random), draw(t, random))
	}
	apply(t, r, put(t, `{"client": "org:z"}`))
	before, whole := text(r), testkit.Must(os.ReadFile(path))(t)
	apply(t, r, put(t, `{"client": "user:a", "parent": "org:z"}`), put(t, `{"client": "org:y", "note": "the last batch"}`), put(t, `{"client": "user:b"}`))
	after, all := text(r), testkit.Must(os.ReadFile(path))(t)
	for n := len(whole); n <= len(all); n++ {
		if err := os.WriteFile(path, all[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		r, want := open(), before
		if n == len(all) {
			want = after
		}
		if got := text(r); got != want {
			t.Fatalf("with %d of %d bytes: %s", n, len(all), got)
		}
		if torn := n > len(whole) && n < len(all); torn != strings.Contains(log.String(), fmt.Sprint("bytes=", n-len(whole))) {
			t.Fatalf("with %d of %d bytes, the log is %s", n-len(whole), len(all), &log)
		}
		if n%10 > 0 && n < len(all) {
			continue
		}
		apply(t, r, put(t, `{"client": "user:more"}`))
		if again := open(); again.Count() != r.Count() {
			t.Fatalf("a change after %d bytes is not there", n)
		}
	}
	// Zeros, as a loss of power leaves where something was not written yet, make the last batch none, but no other.
	const hole = 8
	for n := len(whole); n <= len(all)-hole; n += 3 {
		holed := bytes.Clone(all)
		clear(holed[n : n+hole])
		testkit.OK(t, os.WriteFile(path, holed, 0o600))
		if got := text(open()); got != before || !strings.Contains(log.String(), fmt.Sprint("bytes=", len(all)-len(whole), " changes=3")) {
			t.Fatalf("with zeros at %d of %d bytes: %s; %s", n, len(all), got, &log)
		}
		testkit.OK(t, os.WriteFile(path, append(holed, all[len(whole):]...), 0o600))
		if err := New(Options{Store: NewJournal(path, logger), Logger: logger}).Look(t.Context()); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Fatalf("with zeros at %d of %d bytes, and another batch: %v", n, len(all), err)
		}
	}
	lines := bytes.SplitAfter(all[len(whole):], []byte("\n"))
	of := func(line []byte, n int) []byte {
		return bytes.Replace(line, []byte(`"of":3`), fmt.Appendf(nil, `"of":%d`, n), 1)
	}
	for i, wrong := range [][][]byte{{lines[0], lines[2]}, {lines[1], lines[2]}, {lines[0], lines[0]}, {lines[0], whole}, {lines[0], of(lines[1], 4)}, {of(lines[0], 0)}} {
		testkit.OK(t, os.WriteFile(path, append(bytes.Clone(whole), bytes.Join(wrong, nil)...), 0o600))
		if err := New(Options{Store: NewJournal(path, logger), Logger: logger}).Look(t.Context()); !errors.Is(err, errOrder) {
			t.Errorf("lines in another order, %d: %v", i, err)
		}
	}
	if err := os.WriteFile(path, append([]byte("{\n"), all...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := New(Options{Store: NewJournal(path, slog.Default())}).Look(t.Context()); err == nil || !strings.Contains(err.Error(), "line 1 of clients.ndjson is damaged") {
		t.Errorf("a damaged line: %v", err)
	}
}

// A journal does not grow with the number of changes.
func TestJournalIsRewritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clients.ndjson")
	j := NewJournal(path, slog.Default())
	defer j.Close()
	r := New(Options{Store: j})
	for i := range 25 {
		var changes []Change
		for n := range MaxChanges {
			changes = append(changes, put(t, fmt.Sprintf(`{"client": "user:%d", "tier": "t%d"}`, n, i)))
		}
		apply(t, r, changes...)
	}
	if n := strings.Count(string(testkit.Must(os.ReadFile(path))(t)), "\n"); n > 13_000 {
		t.Errorf("it has %d lines", n)
	}
	again := New(Options{Store: NewJournal(path, slog.Default())})
	look(t, again)
	if text(again) != text(r) {
		t.Error("it has become another directory")
	}
}

// What an instance knows may be old, so no change is answered from that alone.
func TestStale(t *testing.T) {
	server := testredis.Start(t)
	a, b := New(Options{Store: redisStore(t, server.Addr)}), New(Options{Store: redisStore(t, server.Addr)})
	apply(t, a, put(t, `{"client": "user:ann"}`))
	look(t, b)
	apply(t, a, put(t, `{"client": "user:ann", "blocked": true}`), put(t, `{"client": "user:new"}`))
	unblock, there := put(t, `{"client": "user:ann"}`), put(t, `{"client": "user:new", "tier": "pro"}`)
	there.If = Exists
	for i, o := range apply(t, b, unblock, there) {
		if o.Err != nil || o.Unchanged {
			t.Errorf("change %d: %+v", i, o)
		}
	}
	if look(t, a); text(a) != text(b) {
		t.Errorf("%s\n%s", text(a), text(b))
	}
	server.Do("FLUSHALL")
	if _, err := b.Apply(t.Context(), "x", []Change{unblock}); !errors.Is(err, ErrLost) {
		t.Errorf("a change that changes nothing, after a loss: %v", err)
	}
}

// What this version cannot use stays in the journal, which says so, and is in force when it can be used.
func TestUnusableStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clients.ndjson")
	usable := `{"name":"org:acme","entry":{"serial":"1","at":0,"client":{"blocked":true}}}` + "\n"
	rest := `{"name":"user:ann","entry":{"serial":"2","at":0,"client":{"parent":"org:acme"}}}` + "\n"
	testkit.OK(t, os.WriteFile(path, []byte(strings.Replace(usable, "blocked", "later", 1)+rest), 0o600))
	r := New(Options{Store: NewJournal(path, slog.Default())})
	if look(t, r); r.Count() != 0 || r.Status().Unusable == nil {
		t.Errorf("%d clients: %+v", r.Count(), r.Status())
	}
	for i := range 11 { // until the journal is written again
		var changes []Change
		for n := range MaxChanges {
			changes = append(changes, put(t, fmt.Sprintf(`{"client": "user:%d", "tier": "t%d"}`, n, i)))
		}
		apply(t, r, changes...)
	}
	kept := testkit.Must(os.ReadFile(path))(t)
	if n := strings.Count(string(kept), "\n"); n > 5000 {
		t.Fatalf("the journal has %d lines", n)
	}
	testkit.OK(t, os.WriteFile(path, []byte(strings.Replace(string(kept), "later", "blocked", 1)), 0o600))
	r = New(Options{Store: NewJournal(path, slog.Default())})
	look(t, r)
	if line := r.Line("user:ann"); len(line) != 2 || !line[1].Blocked || r.Status().Unusable != nil {
		t.Errorf("%+v, %+v", line, r.Status())
	}
}

// A client that is written longer than it can be read, because of escapes, is denied: what is acknowledged can be read again.
func TestTooLongToRead(t *testing.T) {
	own := make([]string, 64)
	for i := range own {
		var all []string
		for n := range 16 {
			all = append(all, fmt.Sprintf(`"%d/%dd"`, 1_125_899_906_842_000+n, 300+n))
		}
		own[i] = fmt.Sprintf(`"%s%02d": [%s]`, strings.Repeat("<", 98), i, strings.Join(all, ","))
	}
	long := put(t, `{"client": "user:long", "note": "`+strings.Repeat("<", 500)+`", "limits": {`+strings.Join(own, ",")+`}}`)
	stamped := long.Client
	stamped.Stamp.Serial = 1
	if _, err := recordOf(stamped).client(); err == nil {
		t.Fatalf("it can be read, so this tests nothing: %d bytes", len(recordOf(stamped).Text))
	}
	r := New(Options{Store: NewJournal(filepath.Join(t.TempDir(), "clients.ndjson"), slog.Default())})
	if o := apply(t, r, long); reason(o[0].Err) != Invalid || r.Count() != 0 {
		t.Errorf("%v, and there are %d clients", o[0].Err, r.Count())
	}
}

// Zeros that a loss of power has left behind the last line are none, however many.
func TestZerosInJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clients.ndjson")
	r := New(Options{Store: NewJournal(path, slog.Default())})
	look(t, r)
	apply(t, r, put(t, `{"client": "user:ann"}`))
	whole := testkit.Must(os.ReadFile(path))(t)
	for _, zeros := range []int{1, 1000, maxLine, 3*maxLine + 1} {
		testkit.OK(t, os.WriteFile(path, append(whole[:len(whole):len(whole)], make([]byte, zeros)...), 0o600))
		again := New(Options{Store: NewJournal(path, slog.Default())})
		look(t, again)
		apply(t, again, put(t, `{"client": "user:bob"}`))
		last := New(Options{Store: NewJournal(path, slog.Default())})
		if look(t, last); last.Count() != 2 {
			t.Errorf("%d zeros: %s", zeros, text(last))
		}
	}
	zeros := append(append(bytes.Clone(whole), make([]byte, 2*maxLine)...), '\n')
	testkit.OK(t, os.WriteFile(path, append(zeros, whole...), 0o600))
	if err := New(Options{Store: NewJournal(path, slog.Default())}).Look(t.Context()); err == nil {
		t.Error("a line of zeros before another is none")
	}
	testkit.OK(t, os.WriteFile(path, bytes.ReplaceAll(zeros, []byte{0}, []byte{'0'}), 0o600))
	if err := New(Options{Store: NewJournal(path, slog.Default())}).Look(t.Context()); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("a line that is too long: %v", err)
	}
}
