package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/store/storetest"
)

// Keys are any bytes. Whatever they are, what belongs to one key is on one slot, and two keys
// share nothing.
var oddKeys = []string{
	"}", "}x", "}{", "{", "{}", "{}x", "{a}b", "{a", "a}", "%", "%%", "%}", "%}x", "%%}", "%x", "\x00", "\xff}{", "a b", ":%hold:",
	strings.Repeat("}", weir.MaxKeyLen),
}

func TestOddKeysAreApart(t *testing.T) {
	limit := weir.MustCompile("5/1m")
	for _, prefix := range []string{DefaultPrefix, "{weir}:", "a}b:"} {
		s := testkit.Must(newStore(Options{Prefix: prefix}))(t)
		seen := map[string]string{}
		for _, key := range append(oddKeys, "a", "x") {
			op := weir.Op{Key: key, Limit: limit, Cost: 1}
			s.link.cluster = true
			c := s.checkOf(reserve, []weir.Op{op})
			name, slot := c.keys[0], c.slot
			if other, ok := seen[name]; ok {
				t.Errorf("%q and %q are under %q", key, other, name)
			}
			seen[name] = key
			for _, id := range []weir.HoldID{{}, braced(1), {'}'}, {'{', '}'}} {
				for _, beside := range []string{c.listKey(0), s.holds(c, id).record} {
					if slotOf(beside) != slot {
						t.Errorf("%q: %q is on slot %d, and %q on %d", key, name, slot, beside, slotOf(beside))
					}
				}
			}
		}
	}
}

// testHoldsOnOddKeys reserves and settles on each, alone and with others.
func testHoldsOnOddKeys(t *testing.T, subject storetest.Subject) {
	store := subject.Store.(*Store)
	subject.Set(weir.MicrosOf(time.Date(2026, 1, 1, 12, 0, 7, 0, time.UTC)))
	for i, text := range []string{"token_bucket 10/1h", "sliding_log 10/1h", "fixed_window 10/1h release"} {
		limit, other := weir.MustCompile(text), weir.MustCompile("sliding_window 10/1h")
		for j, key := range oddKeys {
			id := weir.HoldID{byte(i), byte(j), '}', '{', 1}
			op := weir.Op{Key: key, Limit: limit, Cost: 6}
			ops := []weir.Op{op, {Key: fmt.Sprint("other", i, j), Limit: other, Cost: 1}}[:1+j%2]
			testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: id}, ops...))(t)
			store.known.forget(id) // as another instance
			testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: id, TTL: time.Hour}))(t)
			done := testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: id, Used: func(string, int64) int64 { return 2 }}))(t)
			if left := testkit.Must(store.Peek(t.Context(), nil, op))(t)[0].Remaining; done.State != weir.HoldSettled || left != 8 {
				t.Errorf("%s %q: %+v, %d remain", text, key, done, left)
			}
		}
	}
}

// A prefix with half a hash tag would put what belongs to one key on several slots.
func TestPrefixWithHalfATag(t *testing.T) {
	for prefix, ok := range map[string]bool{"weir:": true, "{weir}:": true, "a{b}c{": true, "}": true, "{": false, "{}": false, "a{b:": false, "}{": false} {
		if _, err := newStore(Options{Prefix: prefix}); (err == nil) != ok {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

// What a hold is to give back when it expires is kept as long as it is charged, and not only
// until it expires: nobody may ask for it until then.
func TestReleasesAreKept(t *testing.T) {
	client := connect(t)
	store := storeOn(t, client, Options{})
	for _, text := range []string{"token_bucket 10/1d release", "sliding_log 10/1d release", "sliding_window 10/1d release"} {
		op := weir.Op{Key: "kept", Limit: weir.MustCompile(text), Cost: 10}
		d := testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: weir.NewHoldID(), TTL: time.Second}, op))(t)
		key := store.checkOf(reserve, []weir.Op{op}).listKey(0)
		if left := testkit.Must(client.Do(t.Context(), client.B().Pttl().Key(key).Build()).AsInt64())(t); left < d[0].ResetAfter.Milliseconds()-60_000 {
			t.Errorf("%s: it is kept for %d ms, and charged for %v", text, left, d[0].ResetAfter)
		}
	}
}
