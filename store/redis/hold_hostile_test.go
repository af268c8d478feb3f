package redis

import (
	"encoding/binary"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// maxListed is how many holds a list has at most.
const maxListed = 1000

// All holds of a key that expire together are ended in a few writes: a script blocks Redis.
func TestHoldsExpireTogether(t *testing.T) {
	client := connect(t)
	testkit.OK(t, client.Do(t.Context(), client.B().Flushall().Build()).Error())
	var clock fake
	now := weir.MicrosOf(time.Date(2026, 1, 1, 12, 0, 7, 0, time.UTC))
	clock.Set(now)
	store := storeOn(t, client, Options{Timeout: 20 * time.Second, Clock: clock.Now})
	limit := testkit.Must(weir.Limit{N: 10_000, Period: time.Hour, Burst: 10_000, Release: true}.Compile())(t)
	op := weir.Op{Key: "k", Limit: limit, Cost: 1}
	for i := range maxListed {
		r := weir.Reservation{TTL: 3 * time.Second}
		binary.BigEndian.PutUint64(r.ID[:], uint64(i+1))
		if d := testkit.Must(store.Reserve(t.Context(), nil, r, op))(t); !d[0].Allowed {
			t.Fatalf("%d: %+v", i, d)
		}
	}
	clock.Set(now.Add(3 * time.Second))
	testkit.OK(t, client.Do(t.Context(), client.B().Arbitrary("CONFIG", "RESETSTAT").Build()).Error())
	d := testkit.Must(store.Take(t.Context(), nil, op))(t)
	if d[0].Remaining != 9999 {
		t.Errorf("%+v", d)
	}
	text := testkit.Must(client.Do(t.Context(), client.B().Info().Section("commandstats").Build()).ToString())(t)
	if !strings.Contains(text, "cmdstat_fcall:calls=") {
		t.Fatalf("Redis counted no call: %s", text)
	}
	writes := 0 // Redis lists only commands that were called
	for _, calls := range regexp.MustCompile(`cmdstat_(?:setrange|psetex|unlink):calls=(\d+)`).FindAllStringSubmatch(text, -1) {
		writes += testkit.Must(strconv.Atoi(calls[1]))(t)
	}
	if writes > 3 {
		t.Errorf("%d writes: %s", writes, text)
	}
}

// What is damaged of a hold counts as nothing: it does not fail requests, of which many
// travel together.
func TestDamagedHold(t *testing.T) {
	client := connect(t)
	store := storeOn(t, client, Options{})
	id := weir.HoldID{1}
	for _, text := range []string{"token_bucket 10/3650d", "token_bucket 10/3650d release", "fixed_window 10/3650d", "sliding_log 10/3650d release"} {
		op := weir.Op{Key: "k", Limit: weir.MustCompile(text), Cost: 1}
		state := store.keyOf(&op)
		list := store.checkOf(reserve, []weir.Op{op}).listKey(0)
		for _, value := range []string{"", "abc", "\xff" + strings.Repeat("x", 100), "\x00\xff\xff" + strings.Repeat("x", 100)} {
			for _, key := range []string{list, store.directoryOf(id)} {
				testkit.OK(t, client.Do(t.Context(), client.B().Flushall().Build()).Error())
				testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: id, TTL: time.Minute}, op))(t)
				before := run(t, client, "GET", key) // which fails if it is called otherwise
				if key == state {
					value = before[:28] + value
				}
				run(t, client, "SET", key, value)
				if d := testkit.Must(store.Take(t.Context(), nil, op))(t); !d[0].Allowed || d[0].Remaining != 8 {
					t.Errorf("%s %q %q: %+v", text, key, value, d)
				}
				if d := testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: weir.HoldID{2}, TTL: time.Minute}, op))(t); !d[0].Allowed {
					t.Errorf("%s %q %q: another one: %+v", text, key, value, d)
				}
				if done := testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: id, Used: func(string, int64) int64 { return 0 }}))(t); done.State != weir.HoldSettled {
					t.Errorf("%s %q %q: %+v", text, key, value, done)
				}
			}
		}
	}
}

// What is behind a state survives whatever else happens to the state, and lives as long as it is
// needed.
func TestHoldsBehindStates(t *testing.T) {
	client := connect(t)
	store := storeOn(t, client, Options{})
	other := weir.Op{Key: "other", Limit: weir.MustCompile("10/1h"), Cost: 1}
	settle := func(n byte, used int64) weir.HoldState {
		t.Helper()
		return testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: weir.HoldID{n}, Used: func(string, int64) int64 { return used }}))(t).State
	}
	for _, text := range []string{"token_bucket 10/1s", "fixed_window 10/1d", "sliding_window 10/1d", "token_bucket 10/1s release", "sliding_window 10/1d release"} {
		testkit.OK(t, client.Do(t.Context(), client.B().Flushall().Build()).Error())
		limit := weir.MustCompile(text)
		op := weir.Op{Key: "k", Limit: limit, Cost: 1}
		held := op
		held.Cost = 3
		testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: weir.HoldID{1}, TTL: time.Hour}, held))(t)
		testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: weir.HoldID{2}, TTL: time.Minute}, held, other))(t)
		d := testkit.Must(store.Take(t.Context(), nil, op))(t)
		testkit.OK(t, store.Refund(t.Context(), weir.Op{Key: "k", Limit: limit, Cost: 1, Receipt: d[0].Receipt}))
		testkit.Must(store.Take(t.Context(), nil, op, other))(t)
		testkit.Must(store.Peek(t.Context(), nil, op))(t)
		testkit.OK(t, store.Refund(t.Context(), weir.Op{Key: "k", Limit: limit, Cost: 10, Receipt: weir.Latest}))
		if left := testkit.Must(client.Do(t.Context(), client.B().Pttl().Key(store.keyOf(&op)).Build()).AsInt64())(t); left < time.Hour.Milliseconds()-60_000 {
			t.Errorf("%s: it is kept for %d ms", text, left)
		}
		testkit.Must(store.Take(t.Context(), nil, op))(t)
		extended := testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: weir.HoldID{2}, TTL: 2 * time.Hour}))(t)
		if left := testkit.Must(client.Do(t.Context(), client.B().Pttl().Key(store.keyOf(&op)).Build()).AsInt64())(t); extended.State != weir.HoldOpen || left < 2*time.Hour.Milliseconds()-60_000 {
			t.Errorf("%s: %v, kept for %d ms", text, extended.State, left)
		}
		for n := byte(1); n <= 2; n++ {
			if count := run(t, client, "GETRANGE", store.keyOf(&op), "29", "30"); count != "\x00"+string(rune(3-n)) {
				t.Errorf("%s: %q are open", text, count)
			}
			if state := settle(n, 3); state != weir.HoldSettled {
				t.Errorf("%s: %v", text, state)
			}
		}
		testkit.OK(t, store.Reset(t.Context(), op))
		if left := run(t, client, "EXISTS", store.keyOf(&op)); left != "0" {
			t.Errorf("%s: after a reset there are %s", text, left)
		}
		testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: weir.HoldID{3}, TTL: time.Hour}, held))(t)
		testkit.OK(t, store.Reset(t.Context(), op))
		if left, state := run(t, client, "EXISTS", store.keyOf(&op)), settle(3, 0); left != "0" || state != weir.HoldSettled {
			t.Errorf("%s: after a reset %s, %v", text, left, state)
		}
	}
}

// A client that is reset and charged in one call is forgotten in time.
func TestResetAndTakeInOneCall(t *testing.T) {
	client := connect(t)
	store := storeOn(t, client, Options{})
	for _, text := range []string{"token_bucket 10/3650d", "fixed_window 10/3650d", "sliding_window 10/3650d", "sliding_buckets 10/3650d", "sliding_log 10/3650d"} {
		op := weir.Op{Key: "k", Limit: weir.MustCompile(text), Cost: 1}
		ops := []weir.Op{op}
		testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: weir.NewHoldID()}, op))(t)
		after := store.checkOf(take, ops)
		testkit.OK(t, store.call(newRequest([]*check{store.checkOf(reset, ops), after}, 0)))
		left := testkit.Must(client.Do(t.Context(), client.B().Pttl().Key(store.keyOf(&op)).Build()).AsInt64())(t)
		if left <= 0 || after.decisions[0].Remaining != 9 {
			t.Errorf("%s: it is kept for %d ms, and %+v", text, left, after.decisions[0])
		}
	}
}

// A list that was long does not stay so: each check of its key would read it.
func TestHoldsShrink(t *testing.T) {
	client := connect(t)
	store := storeOn(t, client, Options{})
	for _, text := range []string{"fixed_window 1000/3650d", "token_bucket 1000/3650d", "sliding_window 1000/3650d release", "sliding_log 1000/3650d"} {
		testkit.OK(t, client.Do(t.Context(), client.B().Flushall().Build()).Error())
		op := weir.Op{Key: "k", Limit: weir.MustCompile(text), Cost: 1}
		list := store.checkOf(reserve, []weir.Op{op}).listKey(0)
		size := func() int64 {
			t.Helper()
			return testkit.Must(client.Do(t.Context(), client.B().Strlen().Key(list).Build()).AsInt64())(t)
		}
		ttl := func() int64 {
			t.Helper()
			return testkit.Must(client.Do(t.Context(), client.B().Pttl().Key(list).Build()).AsInt64())(t)
		}
		for n := range byte(40) {
			testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: weir.HoldID{n}, TTL: time.Hour}, op))(t)
		}
		long, lives := size(), ttl()
		for n := range byte(39) {
			if done := testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: weir.HoldID{n}, Used: func(string, int64) int64 { return 1 }}))(t); done.State != weir.HoldSettled {
				t.Fatalf("%s: %+v", text, done)
			}
		}
		if short, left := size(), ttl(); long < 40*59 || short > long/2 || left <= 0 || left > lives || left < lives-60_000 {
			t.Errorf("%s: it was %d and is %d bytes, and lives for %d ms of %d", text, long, short, left, lives)
		}
		if d := testkit.Must(store.Peek(t.Context(), nil, op))(t); d[0].Remaining != 960 {
			t.Errorf("%s: %+v", text, d)
		}
		if done := testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: weir.HoldID{39}, Used: func(string, int64) int64 { return 0 }}))(t); done.State != weir.HoldSettled || done.Repeated {
			t.Errorf("%s: %+v", text, done)
		}
	}
}

// What somebody else has put in the place of holds is an error that names the key, and fails
// no other request, although many travel together. To reset the client removes it.
func TestForeignHolds(t *testing.T) {
	client := connect(t)
	store := storeOn(t, client, Options{})
	limit := testkit.Must(weir.Limit{Algorithm: weir.SlidingLog, N: 10, Period: time.Hour, Release: true}.Compile())(t) // holds of others are behind their states
	op, other := weir.Op{Key: "k", Limit: limit, Cost: 1}, weir.Op{Key: "other", Limit: limit, Cost: 1}
	id := weir.HoldID{1}
	do := func(words ...string) {
		t.Helper()
		testkit.OK(t, client.Do(t.Context(), client.B().Arbitrary(words...).Build()).Error())
	}
	nothing := func(string, int64) int64 { return 0 }
	for what, call := range map[string]func() error{
		"take": func() error { _, err := store.Take(t.Context(), nil, op); return err },
		"both": func() error { _, err := store.Take(t.Context(), nil, other, op); return err },
		"peek": func() error { _, err := store.Peek(t.Context(), nil, op); return err },
		"reserve": func() error {
			_, err := store.Reserve(t.Context(), nil, weir.Reservation{ID: weir.HoldID{2}, TTL: time.Minute}, op)
			return err
		},
		"extend": func() error {
			_, err := store.Settle(t.Context(), weir.Settlement{ID: id, TTL: time.Minute})
			return err
		},
		"settle": func() error { _, err := store.Settle(t.Context(), weir.Settlement{ID: id, Used: nothing}); return err },
	} {
		do("FLUSHALL")
		testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: id, TTL: time.Minute}, op, other))(t)
		const held = "weir:%holds:L1h{k}"
		do("RENAME", held, "elsewhere") // which fails if it is called otherwise
		do("SADD", held, "m")
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if err := call(); err == nil || !strings.Contains(err.Error(), `"`+held+`" contains data that this version of weir did not write`) {
					t.Errorf("%s: %v", what, err)
				}
			})
			wg.Go(func() {
				if _, err := store.Take(t.Context(), nil, other); err != nil {
					t.Errorf("another client, during %s: %v", what, err)
				}
			})
		}
		wg.Wait()
		testkit.OK(t, store.Reset(t.Context(), op))
		if d := testkit.Must(store.Take(t.Context(), nil, op))(t); d[0].Remaining != 9 {
			t.Errorf("after %s and a reset: %+v", what, d)
		}
	}

	// A record counts as none for who knows the hold; others cannot read what it was charged on.
	for _, op := range []weir.Op{op, {Key: "plain", Limit: weir.MustCompile("10/1h"), Cost: 1}} {
		do("FLUSHALL")
		testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: id, TTL: time.Minute}, op))(t)
		do("DEL", store.directoryOf(id))
		do("SADD", store.directoryOf(id), "m")
		if done := testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: id, Used: nothing}))(t); done.State != weir.HoldSettled {
			t.Errorf("%+v", done)
		}
		do("DEL", store.directoryOf(id))
		do("SADD", store.directoryOf(id), "m")
		if _, err := store.Settle(t.Context(), weir.Settlement{ID: id, Used: nothing}); err != errDirectory {
			t.Errorf("%v", err)
		}
	}
}

// A record that is lost, or that somebody else has put there, is written again, beside others of
// the same call that are intact. It is known for as long as they are.
func TestLostRecords(t *testing.T) {
	client := connect(t)
	store := storeOn(t, client, Options{})
	for _, text := range []string{"token_bucket 1000/1h", "fixed_window 1000/1d", "sliding_window 1000/1d"} {
		testkit.OK(t, client.Do(t.Context(), client.B().Flushall().Build()).Error())
		limit := weir.MustCompile(text)
		ids, used := []weir.HoldID{{1}, {2}, {3}, {4}, {5}}, []int64{3, 5, 7, 0, 1_000_000}
		settle := func() (batch []*check) {
			t.Helper()
			for i, id := range ids {
				settlement := weir.Settlement{ID: id, Used: func(string, int64) int64 { return used[i] }}
				d := &directory{ops: []weir.Op{{Key: strconv.Itoa(i), Limit: limit, Cost: 5}}}
				c := store.checkOf(settle, d.ops)
				store.toSettle(c, &settlement, d)
				c.settles(0, &settlement, d, 0)
				batch = append(batch, c)
			}
			testkit.OK(t, store.call(newRequest(batch, 0)))
			return batch
		}
		for i, id := range ids {
			testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: id, TTL: time.Minute}, weir.Op{Key: strconv.Itoa(i), Limit: limit, Cost: 5}))(t)
		}
		run(t, client, "DEL", store.directoryOf(ids[1]))
		run(t, client, "DEL", store.directoryOf(ids[3]))
		run(t, client, "SADD", store.directoryOf(ids[3]), "m")
		excess := [5]int64{4: settle()[4].hold.outcomes[0].excess} // of what may be owed
		if excess[4] < 900_000 {
			t.Errorf("%s: %d are too much", text, excess[4])
		}
		for range 2 {
			for i, c := range settle() {
				if got, want := c.hold.outcomes, (outcome{holdSettled, used[i], excess[i], true}); c.err != nil || len(got) != 1 || got[0] != want {
					t.Errorf("%s: hold %d: %+v %v, want %+v", text, i, got, c.err, want)
				}
				left := testkit.Must(client.Do(t.Context(), client.B().Pttl().Key(store.directoryOf(ids[i])).Build()).AsInt64())(t)
				if left <= 0 || left > 150_000 {
					t.Errorf("%s: the record of hold %d is kept for %d ms", text, i, left)
				}
			}
		}
	}
}

// What is foreign in the place of a state is an error of its own requests, and of no other in the
// same call.
func TestForeignStateAmongHolds(t *testing.T) {
	client := connect(t)
	store := storeOn(t, client, Options{})
	for _, text := range []string{"token_bucket 10/1h", "fixed_window 10/1d", "sliding_window 10/1d", "sliding_log 10/1d", "sliding_buckets 10/1d"} {
		limit := weir.MustCompile(text)
		strange, other := weir.Op{Key: "strange", Limit: limit, Cost: 1}, weir.Op{Key: "other", Limit: limit, Cost: 2}
		run(t, client, "SADD", store.keyOf(&strange), "m")
		settlement := weir.Settlement{ID: weir.HoldID{1}, Used: func(string, int64) int64 { return 0 }}
		d := &directory{ops: []weir.Op{strange}}
		var batch []*check
		for _, verb := range []verb{settle, take, reserve, settle, reserve, take} {
			op := strange
			if len(batch) >= 4 {
				op = other
			}
			c := store.checkOf(verb, []weir.Op{op})
			switch verb {
			case settle:
				store.toSettle(c, &settlement, d)
				c.settles(0, &settlement, d, 0)
			case reserve:
				store.holds(c, weir.NewHoldID()).life = time.Minute
			}
			batch = append(batch, c)
		}
		r := newRequest(batch, 0)
		testkit.OK(t, store.call(r))
		if r.chains == nil {
			t.Errorf("%s: they are not singles", text)
		}
		for i, c := range batch {
			switch {
			case i < 4 && c.err == nil:
				t.Errorf("%s, request %d: no error, but %+v %+v", text, i, c.decisions, c.hold.outcomes)
			case i >= 4 && (c.err != nil || c.decisions[0].Remaining != 10-2*int64(i-3)):
				t.Errorf("%s, request %d: %+v %v", text, i, c.decisions, c.err)
			}
		}
		list := batch[0].listKey(0)
		if list == store.keyOf(&strange) {
			continue
		}
		// Something foreign in the place of the open holds matters to those about holds.
		run(t, client, "RENAME", store.keyOf(&strange), list)
		for i, verb := range []verb{settle, take, reserve} {
			batch[i].err = nil
			testkit.OK(t, store.call(newRequest(batch[i:i+1], 0)))
			switch err := batch[i].err; {
			case verb == take && (err != nil || batch[i].decisions[0].Remaining != 9):
				t.Errorf("%s: %+v %v", text, batch[i].decisions, err)
			case verb != take && (err == nil || !strings.Contains(err.Error(), list)):
				t.Errorf("%s, request %d: %v, %+v %+v", text, i, err, batch[i].decisions, batch[i].hold.outcomes)
			}
		}
	}
}

// A key with as many holds as there may be answers further reservations without reading all
// of them each time: who holds so many could keep Redis busy with requests that are denied.
func TestFullOfHolds(t *testing.T) {
	client := connect(t)
	testkit.OK(t, client.Do(t.Context(), client.B().Flushall().Build()).Error())
	var clock fake
	now := weir.MicrosOf(time.Date(2026, 1, 1, 12, 0, 7, 0, time.UTC))
	clock.Set(now)
	store := storeOn(t, client, Options{Timeout: 20 * time.Second, Clock: clock.Now})
	op := weir.Op{Key: "k", Limit: weir.MustCompile("fixed_window 10000/1h"), Cost: 1}
	id := func(i int) (id weir.HoldID) {
		binary.BigEndian.PutUint64(id[:], uint64(i))
		return id
	}
	reserve := func(i int, ttl, retry time.Duration) {
		t.Helper()
		d := testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: id(i), TTL: ttl}, op))(t)
		if d[0].Allowed != (retry == 0) || d[0].RetryAfter != retry {
			t.Errorf("hold %d: %+v, want %v", i, d[0], retry)
		}
	}
	for i := 1; i <= maxListed; i++ {
		reserve(i, time.Duration(i)*time.Second, 0)
	}
	testkit.OK(t, client.Do(t.Context(), client.B().Arbitrary("CONFIG", "RESETSTAT").Build()).Error())
	for range 20 {
		reserve(5000, time.Minute, time.Second)
	}
	text := testkit.Must(client.Do(t.Context(), client.B().Info().Section("commandstats").Build()).ToString())(t)
	if !strings.Contains(text, "cmdstat_fcall:calls=20,") || strings.Contains(text, "cmdstat_setrange") {
		t.Errorf("something was written: %s", text)
	}
	// Whatever happens to the first is seen.
	testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: id(1), TTL: time.Hour}))(t)
	reserve(5000, time.Minute, 2*time.Second)
	testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: id(2), Used: func(string, int64) int64 { return 1 }}))(t)
	reserve(5001, time.Hour, 0)
	reserve(5002, time.Minute, 3*time.Second)
	clock.Set(now.Add(3 * time.Second))
	reserve(5003, time.Hour, 0)
	reserve(5004, time.Minute, time.Second)
	testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: id(1000), Used: func(string, int64) int64 { return 1 }}))(t)
	reserve(5005, time.Second/2, 0)
	reserve(5006, time.Minute, time.Second/2)
}
