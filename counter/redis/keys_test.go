package redis

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/counter"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

func TestKeyNames(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	s := &Store{prefix: DefaultPrefix}
	for _, c := range []struct {
		key  counter.Key
		want string
	}{
		{counter.Key{Name: "visits"}, "weir:counter:c:ever:UTC{visits}"},
		{counter.Key{Name: "visits", Window: counter.Day, Zone: shanghai}, "weir:counter:c:day:Asia/Shanghai{visits}"},
		{counter.Key{Name: "like", Group: "user:1001", Window: counter.Hour}, "weir:counter:c:hour:UTC:like{user%3A1001}"},
		{counter.Key{Name: "}{%:", Zone: time.FixedZone("a:b{", 60)}, "weir:counter:c:ever:a%3Ab%7B{%7D%7B%25%3A}"},
	} {
		if got := s.counterKey("c", &c.key); got != c.want {
			t.Errorf("%+v is under %q, want %q", c.key, got, c.want)
		}
	}
	users := counter.Key{Name: "like", Group: "g", Window: counter.Month, Distinct: true}
	r := &request{}
	s.put(r, &counter.Delta{Key: users}, time.Now())
	if want := []string{"weir:counter:d:month:UTC:like{g}", "weir:counter:d0:month:UTC:like{g}", "weir:counter:d1:month:UTC:like{g}"}; !slices.Equal(r.keys, want) {
		t.Errorf("%q", r.keys)
	}
	ever := s.boardKeys(&counter.Board{Name: "b"})
	if want := []string{"weir:counter:b:ever:UTC:meta{b}", "weir:counter:b:ever:UTC:0{b}"}; !slices.Equal(ever, want) {
		t.Errorf("%q", ever)
	}
	hot := s.slidingKeys("h", "l", time.Hour, "hot", "events")
	if len(hot) != 25 || hot[0] != "weir:counter:h:3600:sum{l}" || hot[22] != "weir:counter:h:3600:20{l}" || hot[24] != "weir:counter:h:3600:events{l}" {
		t.Errorf("%q", hot)
	}
}

// everything does something of each kind.
func everything(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	var errs []error
	for _, w := range counter.Windows() {
		_, err := s.Add(ctx, counter.Delta{Key: counter.Key{Name: "c", Window: w}, By: counter.One}, counter.Delta{Key: counter.Key{Group: "g", Name: "c", Window: w}, By: -counter.One})
		errs = append(errs, err)
		_, err = s.Add(ctx, counter.Delta{Key: counter.Key{Name: "c", Window: w, Distinct: true}, Members: []string{"m", "n"}})
		errs = append(errs, err)
		errs = append(errs, s.Observe(ctx, counter.Sample{Key: counter.Key{Name: "c", Window: w}, Values: []counter.Amount{1, counter.One}}))
		_, err = s.Score(ctx, counter.Board{Name: "b", Window: w}, counter.Mark{Member: "m", By: counter.One})
		errs = append(errs, err)
	}
	_, err := s.Score(ctx, counter.Board{Name: "b", Sliding: time.Minute}, counter.Mark{Member: "m", By: counter.One}, counter.Mark{Member: "n", By: counter.One})
	errs = append(errs, err)
	_, err = s.Hit(ctx, counter.HotList{Name: "h", Window: time.Minute, Threshold: 1}, "i", "j")
	errs = append(errs, err)
	_, err = s.NextID(ctx, "s")
	errs = append(errs, err)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever is kept expires, and no later than it says.
func TestEveryKeyExpires(t *testing.T) {
	server := testredis.Start(t)
	s := storeOn(t, clientOf(t, server), Options{MaxMembers: 1}) // so that members are dropped
	begun := time.Now()
	for range 3 {
		everything(t, s)
	}
	keys := strings.Fields(server.Do("KEYS", "*"))
	if len(keys) < 25 {
		t.Fatalf("there are only %q", keys)
	}
	most := map[string]time.Duration{
		"c:ever": 366 * 24 * time.Hour, "c:second": 3601 * time.Second, "c:minute": 1441 * time.Minute, "c:hour": 721 * time.Hour, "c:day": 367 * 24 * time.Hour,
		"c:month": 61 * 31 * 24 * time.Hour, "c:year": 11 * 366 * 24 * time.Hour, "b:month": 9 * 31 * 24 * time.Hour, "b:year": 9 * 366 * 24 * time.Hour,
		"b:ever": 366 * 24 * time.Hour, "b:second": 9 * time.Second, "b:minute": 9 * time.Minute, "b:hour": 9 * time.Hour, "b:day": 9 * 24 * time.Hour,
		"s:60": 2 * 66 * time.Second, "h:60": 2 * (24*time.Hour + 66*time.Second), "i": 24*time.Hour + time.Second,
	}
	for _, w := range counter.Windows() {
		most["d:"+w.String()] = most["c:"+w.String()]
		most["v:"+w.String()] = most["c:"+w.String()]
		if w == counter.Second || w == counter.Minute || w == counter.Hour {
			most["v:"+w.String()] = 367 * w.Width()
		}
		for _, slot := range []string{"d0:", "d1:"} {
			most[slot+w.String()] = min(2*w.Width()+time.Minute, most["c:"+w.String()])
			if w == counter.Ever {
				most[slot+w.String()] = most["c:ever"]
			}
		}
	}
	for _, key := range keys {
		rest, ok := strings.CutPrefix(key, DefaultPrefix)
		kind := strings.SplitN(strings.ReplaceAll(rest, "{", ":"), ":", 3)
		if strings.HasPrefix(kind[0], "v") {
			kind[0] = "v"
		}
		bound, known := most[kind[0]+":"+kind[1]]
		if kind[0] == "i" {
			bound, known = most["i"], true
		}
		ms, err := strconv.ParseInt(server.Do("PTTL", key), 10, 64)
		if ms == -2 && time.Since(begun) > time.Second {
			continue // it has gone meanwhile, as it should
		}
		if left := time.Duration(ms) * time.Millisecond; !ok || !known || err != nil || left <= 0 || left > bound {
			t.Errorf("%s lives for %v, want at most %v", key, left, bound)
		}
	}
	// And they do go.
	_, err := s.Score(t.Context(), counter.Board{Name: "short", Sliding: time.Second}, counter.Mark{Member: "m", By: counter.One})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "an end of the short board", func() bool { return server.Do("KEYS", "*{short}") == "" })
}

// To look leaves nothing behind.
func TestLookingMakesNoKeys(t *testing.T) {
	server := testredis.Start(t)
	s, ctx := storeOn(t, clientOf(t, server), Options{}), t.Context()
	list := counter.HotList{Name: "h", Window: time.Minute, Threshold: 1}
	for _, window := range []time.Duration{0, time.Minute} {
		board := counter.Board{Name: "b", Sliding: window}
		if _, err := s.Top(ctx, board, 10); err != nil {
			t.Error(err)
		}
		if _, err := s.Standing(ctx, board, "m"); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Get(ctx, counter.Key{Name: "k"}); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(ctx, counter.Key{Name: "k", Distinct: true}); err != nil {
		t.Error(err)
	}
	if _, err := s.Distributions(ctx, 1, counter.Key{Name: "k"}); err != nil {
		t.Error(err)
	}
	if _, err := s.Set(ctx, counter.Setting{Key: counter.Key{Name: "k"}}); err != nil {
		t.Error(err)
	}
	if _, err := s.Reset(ctx, counter.Key{Name: "k", Window: counter.Day}, counter.Key{Name: "k", Distinct: true}); err != nil {
		t.Error(err)
	}
	if _, err := s.Hot(ctx, list, 10); err != nil {
		t.Error(err)
	}
	if _, err := s.Events(ctx, list, 0); err != nil {
		t.Error(err)
	}
	if keys := server.Do("KEYS", "*"); keys != "" {
		t.Errorf("there are %q", keys)
	}
}

// Without a clock of the test's, Redis's own decides.
func TestRedisTellsTheTime(t *testing.T) {
	server := testredis.Start(t)
	s := storeOn(t, clientOf(t, server), Options{})
	read := func() int64 {
		part := strings.Fields(server.Do("TIME"))
		seconds, _ := strconv.ParseInt(part[0], 10, 64)
		rest, _ := strconv.ParseInt(part[1], 10, 64)
		return seconds*1_000_000 + rest
	}
	before := read()
	id, err := s.NextID(t.Context(), "s")
	after := read()
	if err != nil || id < before || id > after {
		t.Errorf("NextID = %d, %v between %d and %d", id, err, before, after)
	}
	key := counter.Key{Name: "k", Window: counter.Minute}
	series, err := s.History(t.Context(), 1, key)
	if now := time.UnixMicro(before); err != nil || now.Sub(series[0][0].Start) > 2*time.Minute || series[0][0].Start.After(time.UnixMicro(read())) {
		t.Errorf("History = %v, %v at %v", series, err, now)
	}
	heats, err := s.Hit(t.Context(), counter.HotList{Name: "h", Window: time.Minute, Threshold: 1}, "i")
	if err != nil || heats[0].Since.UnixMicro() < before || heats[0].Since.UnixMicro() > read() {
		t.Errorf("Hit = %+v, %v", heats, err)
	}
}

// Processes share their counts, and two prefixes nothing.
func TestPrefix(t *testing.T) {
	server := testredis.Start(t)
	a, again := storeOn(t, clientOf(t, server), Options{Prefix: "a:"}), storeOn(t, clientOf(t, server), Options{Prefix: "a:"})
	b := storeOn(t, clientOf(t, server), Options{Prefix: "{b}:"})
	for i, s := range []*Store{a, again, b} {
		got, err := s.Add(t.Context(), counter.Delta{Key: counter.Key{Name: "k"}, By: counter.One})
		if want := counter.Whole([]int64{1, 2, 1}[i]); err != nil || got[0] != want {
			t.Errorf("%d: Add = %v, %v", i, got, err)
		}
	}
	client := clientOf(t, server)
	for _, bad := range []Options{{Prefix: "a{"}, {Prefix: "a{}"}, {Prefix: "}a{b"}, {Timeout: -1}} {
		if _, err := New(client, bad); err == nil || !strings.HasPrefix(err.Error(), "counter: ") {
			t.Errorf("New with %+v = %v", bad, err)
		}
	}
	if _, err := New(nil, Options{}); err == nil || !strings.Contains(err.Error(), "requires a client") {
		t.Errorf("New without a client = %v", err)
	}
	if mode := client.Mode(); mode == rueidis.ClientModeCluster {
		t.Errorf("the client is one of a cluster: %v", mode)
	}
}

// A full board costs no more than it has to: members, and each in the steps in which it
// was counted.
func TestBoardsAreBounded(t *testing.T) {
	server := testredis.Start(t)
	s := storeOn(t, clientOf(t, server), Options{MaxMembers: 100})
	list := counter.HotList{Name: "h", Window: time.Hour, Threshold: 3}
	for i := range 40 {
		items := make([]string, 100)
		for j := range items {
			items[j] = strconv.Itoa(100*i + j)
		}
		if _, err := s.Hit(t.Context(), list, items...); err != nil {
			t.Fatal(err)
		}
	}
	fields := 0
	for _, key := range s.slidingKeys("h", "h", time.Hour) {
		if server.Do("TYPE", key) == "hash" && !strings.Contains(key, "meta") {
			n, _ := strconv.Atoi(server.Do("HLEN", key))
			fields += n
		}
	}
	if members, _ := strconv.Atoi(server.Do("ZCARD", "weir:counter:h:3600:sum{h}")); members > 100 || members < 88 || fields > 2*members || fields < members {
		t.Errorf("%d members, and %d fields in steps", members, fields)
	}
}
