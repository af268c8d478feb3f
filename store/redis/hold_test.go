package redis

import (
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/store/storetest"
)

// testHoldsOnSlots: a hold may be on several slots of a cluster. All of them are charged or
// none, and all are settled.
func testHoldsOnSlots(t *testing.T, subject storetest.Subject) {
	store := subject.Store.(*Store)
	subject.Set(weir.MicrosOf(time.Date(2026, 1, 1, 12, 0, 7, 0, time.UTC)))
	limit := weir.MustCompile("sliding_log 10/1h")
	var ops []weir.Op
	slots := map[uint16]bool{}
	for _, key := range []string{"a", "b", "c", "d"} {
		op := weir.Op{Key: key, Limit: limit, Cost: 6}
		ops = append(ops, op)
		slots[slotOf(store.keyOf(&op))] = true
	}
	if len(slots) != len(ops) {
		t.Fatalf("the keys are on %d slots", len(slots))
	}
	remain := func(want int64) {
		t.Helper()
		for i, d := range testkit.Must(store.Peek(t.Context(), nil, ops...))(t) {
			if d.Remaining != want {
				t.Errorf("%s: %d remain, want %d", ops[i].Key, d.Remaining, want)
			}
		}
	}
	settle := func(n byte, used int64) weir.HoldState {
		t.Helper()
		return testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: braced(n), Used: func(string, int64) int64 { return used }}))(t).State
	}
	if d := testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: braced(1)}, ops...))(t); !weir.Allowed(d) {
		t.Fatalf("%+v", d)
	}
	remain(4)
	extended := testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: braced(1), TTL: time.Hour}))(t)
	if extended.State != weir.HoldOpen {
		t.Errorf("extended: %+v", extended)
	}
	for _, used := range []int64{1, 5} { // the second time is a repetition
		if state := settle(1, used); state != weir.HoldSettled {
			t.Errorf("settled: %v", state)
		}
		remain(9)
	}
	testkit.Must(store.Take(t.Context(), nil, weir.Op{Key: "c", Limit: limit, Cost: 8}))(t)
	if d := testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: braced(2)}, ops...))(t); weir.Allowed(d) {
		t.Errorf("%+v", d)
	}
	looked := append([]weir.Op(nil), ops...)
	looked[2].Look = true
	if d := testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: braced(3)}, looked...))(t); weir.Allowed(d) {
		t.Errorf("%+v", d)
	}
	beside := weir.Op{Key: "b", Limit: weir.MustCompile("fixed_window 10/1h"), Cost: 1, Final: true} // on the slot of one that is held
	final := append([]weir.Op{beside}, ops...)
	final[1].Final = true
	if d := testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: braced(5)}, final...))(t); weir.Allowed(d) {
		t.Errorf("%+v", d)
	}
	testkit.OK(t, store.Refund(t.Context(), weir.Op{Key: "c", Limit: limit, Cost: 8, Receipt: weir.Latest}))
	remain(9)
	left := func() int64 { return testkit.Must(store.Peek(t.Context(), nil, beside))(t)[0].Remaining }
	if left() != 10 {
		t.Errorf("beside a hold that was denied, %d remain", left())
	}
	if d := testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: braced(4)}, looked...))(t); !weir.Allowed(d) {
		t.Errorf("%+v", d)
	}
	if state := settle(4, 0); state != weir.HoldSettled {
		t.Errorf("settled: %v", state)
	}
	remain(9)
	granted := testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: braced(6)}, final...))(t)
	if state := settle(6, 0); state != weir.HoldSettled || left() != 9 {
		t.Errorf("settled: %v, and %d remain beside it", state, left())
	}
	final[1].Receipt = granted[1].Receipt
	testkit.OK(t, store.Refund(t.Context(), final[1]))
	remain(9)
}

// braced is an id whose bytes look like a hash tag. Ids are any bytes.
func braced(n byte) weir.HoldID { return weir.HoldID{n, '{', 'x', '}'} }

// A directory that cannot be read is an error, and not a hold that is unknown.
func TestDamagedDirectory(t *testing.T) {
	client := connect(t)
	store := storeOn(t, client, Options{})
	for n, text := range []string{
		"short", "\x00\x012345678", "\x00\x002345678\xff", "\x00\x002345678\x01k\x00\x00", "\x00\x002345678\x01k\x00\x00\x05limit\x01",
		"\x00\x002345678\x01k\x00\x00\x045/1m", "\x00\x002345678" + strings.Repeat("\x01k\x00\x00\x045/1m\x01", weir.MaxOps+1),
	} {
		id := weir.HoldID{byte(n)}
		testkit.OK(t, client.Do(t.Context(), client.B().Set().Key(store.directoryOf(id)).Value(text).Build()).Error())
		if s, err := store.Settle(t.Context(), weir.Settlement{ID: id, Used: func(string, int64) int64 { return 0 }}); err == nil {
			t.Errorf("%q: %+v", text, s)
		}
	}
}

// What holds leave in Redis expires, and what is open does not outlive its time for long.
func TestHoldKeysExpire(t *testing.T) {
	client := connect(t)
	testkit.OK(t, client.Do(t.Context(), client.B().Flushall().Build()).Error())
	store := storeOn(t, client, Options{})
	op := weir.Op{Key: "k", Limit: weir.MustCompile("10/1m"), Cost: 2}
	for n := range byte(3) {
		testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: weir.HoldID{n}, TTL: 30 * time.Second}, op))(t)
	}
	testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: weir.HoldID{1}, Used: func(string, int64) int64 { return 1 }}))(t)
	keys := testkit.Must(client.Do(t.Context(), client.B().Keys().Pattern("*").Build()).AsStrSlice())(t)
	if len(keys) != 1+3 { // the state with the open ones, and three records
		t.Errorf("%q", keys)
	}
	for _, key := range keys {
		if ttl := testkit.Must(client.Do(t.Context(), client.B().Pttl().Key(key).Build()).AsInt64())(t); ttl <= 0 || ttl > 95_000 {
			t.Errorf("%q expires in %d ms", key, ttl)
		}
	}
}

// The store that opened a hold settles it without reading what it was charged on, even if the
// caller has used the bytes of the key for something else. What it remembers is bounded.
func TestKnownHolds(t *testing.T) {
	client := connect(t)
	store, other := storeOn(t, client, Options{}), storeOn(t, client, Options{})
	limit := weir.MustCompile("fixed_window 10/3650d")
	nothing := func(string, int64) int64 { return 0 }
	for n, s := range []*Store{store, other} {
		id, key := weir.HoldID{byte(n + 1)}, []byte("known")
		op := weir.Op{Key: unsafe.String(&key[0], len(key)), Limit: limit, Cost: 5}
		testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: id}, op))(t)
		copy(key, "other")
		testkit.OK(t, client.Do(t.Context(), client.B().Del().Key(store.directoryOf(id)).Build()).Error())
		done := testkit.Must(s.Settle(t.Context(), weir.Settlement{ID: id, Used: nothing}))(t)
		left := testkit.Must(store.Peek(t.Context(), nil, weir.Op{Key: "known", Limit: limit, Cost: 1}))(t)[0].Remaining
		if (done.State == weir.HoldSettled) != (s == store) || left != 10-5*int64(n) {
			t.Errorf("store %d: %+v, %d remain", n, done, left)
		}
		if s == store && store.known.find(id) != nil {
			t.Error("it is remembered after its end")
		}
		// The record was lost before the end; what is written then does not stay for ever.
		if ttl := testkit.Must(client.Do(t.Context(), client.B().Pttl().Key(store.directoryOf(id)).Build()).AsInt64())(t); s == store && (ttl <= 0 || ttl > 65_000) {
			t.Errorf("the record expires in %d ms", ttl)
		}
	}
	for n := range maxKnown + 10 {
		store.known.add(weir.HoldID{byte(n), byte(n >> 8), 1}, new(directory))
	}
	if n := len(store.known.byID); n > maxKnown || store.known.find(weir.HoldID{9, 0, 1}) != nil {
		t.Errorf("%d are remembered", n)
	}
}
