package redis

import (
	"encoding/binary"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/store/storetest"
)

// withMany is a store whose instances all know keys with many holds.
func withMany(s *Store) *Store {
	s.formats.agreed.Store(&agreement{formats: knownFormats, until: time.Now().Add(time.Hour)})
	return s
}

// fewAreMany makes keys have many holds soon, and trees grow.
var fewAreMany = strings.NewReplacer("FEW_HOLDS = 32", "FEW_HOLDS = 1", "RADIX, LEVEL = 32", "RADIX, LEVEL = 3", "MANY_AT_ONCE = 96", "MANY_AT_ONCE = 2", "MOST = 100000", "MOST = 1000")

var manyLibrary = sync.OnceValue(func() *library { return newLibrary(fewAreMany.Replace) })

// withManySoon is a store whose second open hold of a key is one of many.
func withManySoon(t *testing.T, s *Store) *Store {
	t.Helper()
	s.library = manyLibrary()
	testkit.OK(t, s.loadOnce(s.prefix))
	return withMany(s)
}

// olderLibrary does not know how a key with many holds begins.
var olderLibrary = sync.OnceValue(func() *library {
	return newLibrary(strings.NewReplacer(`SHORT = '\255many'`, `SHORT = '\255other'`).Replace)
})

func TestSuiteWithManyHolds(t *testing.T) {
	client := connect(t)
	for way, use := range ways {
		t.Run(way, func(t *testing.T) {
			open := func(t *testing.T) storetest.Subject {
				if err := client.Do(t.Context(), client.B().Flushall().Build()).Error(); err != nil {
					t.Fatal(err)
				}
				var clock fake
				return storetest.Subject{Store: use(withManySoon(t, storeOn(t, client, Options{Clock: clock.Now}))), Set: clock.Set}
			}
			storetest.RunHolds(t, open)
		})
	}
}

// Nothing depends on how many holds of a key are open.
func TestTenThousandHolds(t *testing.T) {
	client := connect(t)
	for way, use := range ways {
		t.Run(way, func(t *testing.T) {
			storetest.RunManyHolds(t, func(t *testing.T) storetest.Subject {
				run(t, client, "FLUSHALL")
				var clock fake
				return storetest.Subject{Store: use(withMany(storeOn(t, client, Options{Clock: clock.Now}))), Set: clock.Set}
			}, 1)
		})
	}
}

// What is in the place of a state lasts as long as the state, however much is charged by functions that know nothing of holds and
// leases.
func TestPlacesLast(t *testing.T) {
	client := connect(t)
	for way, use := range ways {
		for text, always := range map[string]bool{"token_bucket 1000/1h": false, "leaky_bucket 20/10s": true, "sliding_log 1000/1h": true, "fixed_window 10/1m count_denied": false} {
			for what, limit := range map[string]*weir.Compiled{"holds": weir.MustCompile(text), "leases": weir.MustCompile(strings.TrimSuffix(text, " count_denied"))} {
				t.Run(way+"/"+text+"/"+what, func(t *testing.T) {
					run(t, client, "FLUSHALL")
					store := use(withManySoon(t, storeOn(t, client, Options{})))
					op := weir.Op{Key: "k", Limit: limit, Cost: 1}
					if what == "leases" {
						ask := weir.LeaseOp{Op: op, ID: weir.LeaseID{1}, Seq: 1, Want: 1, Term: time.Minute}
						testkit.Must(store.Lease(t.Context(), nil, ask))(t)
					}
					for range 2 * int(truth(what == "holds")) {
						testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: weir.NewHoldID(), TTL: time.Minute}, op))(t)
					}
					op.Cost, op.Always = 40, always
					for range 20 {
						testkit.Must(store.Take(t.Context(), nil, op))(t)
						place := testkit.Must(client.Do(t.Context(), client.B().Pttl().Key(store.keyOf(&op)).Build()).AsInt64())(t)
						moved := beside(store.keyOf(&op), len(store.prefix), movedName)
						if state := testkit.Must(client.Do(t.Context(), client.B().Pttl().Key(moved).Build()).AsInt64())(t); state <= 0 || place < state-5 {
							t.Fatalf("the state lasts for %d ms, and what is in its place for %d", state, place)
						}
					}
				})
			}
		}
	}
}

// A client cannot use up the open holds of a key.
func TestSharesOfHolds(t *testing.T) {
	client := connect(t)
	const most = 10
	lib := newLibrary(func(text string) string {
		return strings.ReplaceAll(fewAreMany.Replace(text), "MOST = 1000", "MOST = "+strconv.Itoa(most))
	})
	for way, use := range ways {
		t.Run(way, func(t *testing.T) {
			storetest.RunFullHolds(t, func(t *testing.T) storetest.Subject {
				if err := client.Do(t.Context(), client.B().Flushall().Build()).Error(); err != nil {
					t.Fatal(err)
				}
				var clock fake
				s := withMany(storeOn(t, client, Options{Clock: clock.Now}))
				s.library = lib
				testkit.OK(t, s.loadOnce(s.prefix))
				return storetest.Subject{Store: use(s), Set: clock.Set}
			}, most)
		})
	}
}

// fill opens holds on a key, many at once.
func fill(t *testing.T, store *Store, op weir.Op, from, n int, ttl time.Duration) {
	t.Helper()
	var callers sync.WaitGroup
	for caller := range min(n, 64) {
		callers.Go(func() {
			for i := from + caller; i < from+n; i += 64 {
				d, err := store.Reserve(t.Context(), nil, weir.Reservation{ID: numbered(i), TTL: ttl}, op)
				if err != nil || !d[0].Allowed {
					t.Errorf("hold %d: %v, %+v", i, err, d)
				}
			}
		})
	}
	callers.Wait()
}

func numbered(i int) (id weir.HoldID) {
	binary.BigEndian.PutUint64(id[:], uint64(i))
	return id
}

// What a call has Redis do does not grow with the number of open holds, and if many expire together, each call
// ends a few of them.
func TestManyHoldsCostAsMuchAsFew(t *testing.T) {
	client := connect(t)
	for _, text := range []string{"token_bucket 1000000/1h", "leaky_bucket 1000000/1h", "fixed_window 1000000/1h", "sliding_window 1000000/1h", "sliding_log 100000/1h", "sliding_buckets 1000000/1h"} {
		t.Run(text, func(t *testing.T) {
			var clock fake
			now := weir.MicrosOf(time.Date(2026, 1, 1, 12, 0, 7, 0, time.UTC))
			clock.Set(now)
			store := withMany(storeOn(t, client, Options{Clock: clock.Now, Prefix: strings.Fields(text)[0] + ":"}))
			l := weir.MustCompile(text).Limit()
			l.Release = true
			op := weir.Op{Key: "k", Limit: testkit.Must(l.Compile())(t), Cost: 2}
			costs := func(id int) int {
				testkit.OK(t, client.Do(t.Context(), client.B().Arbitrary("CONFIG", "RESETSTAT").Build()).Error())
				fill(t, store, op, id, 1, time.Hour)
				testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: numbered(id), Used: func(string, int64) int64 { return 1 }}))(t)
				return commands(t, client)
			}
			const many = 2500
			fill(t, store, op, 0, 100, 30*time.Second)
			few := costs(1 << 20)
			fill(t, store, op, 100, many-100, 30*time.Second)
			if all := costs(1 << 21); all > few+12 || few > 60 {
				t.Errorf("to reserve and settle takes %d commands with 100 open holds, and %d with %d", few, all, many)
			}
			clock.Set(now.Add(30 * time.Second))
			testkit.OK(t, client.Do(t.Context(), client.B().Arbitrary("CONFIG", "RESETSTAT").Build()).Error())
			used := int64(2) // by what was settled
			if l.Algorithm == weir.TokenBucket || l.Algorithm == weir.LeakyBucket {
				used = 0 // since this has drained
			}
			if d := testkit.Must(store.Peek(t.Context(), nil, op))(t); d[0].Limit-d[0].Remaining != used {
				t.Errorf("when all have expired: %+v", d[0])
			}
			if calls := called(t, client, "fcall"); calls < many/96 || calls > many/96+2 {
				t.Errorf("%d holds expired in %d calls", many, calls)
			}
		})
	}
}

// commands is how many Redis has run.
func commands(t *testing.T, client rueidis.Client) (n int) {
	t.Helper()
	return called(t, client, "[^:]+")
}

func called(t *testing.T, client rueidis.Client, what string) (n int) {
	t.Helper()
	text := testkit.Must(client.Do(t.Context(), client.B().Info().Section("commandstats").Build()).ToString())(t)
	for _, calls := range regexp.MustCompile(`cmdstat_`+what+`:calls=(\d+)`).FindAllStringSubmatch(text, -1) {
		n += testkit.Must(strconv.Atoi(calls[1]))(t)
	}
	return n
}

// Versions that do not know keys with many holds do not touch them, and as soon as few are open again, they
// can. Meanwhile this version can do everything with such a key.
func TestManyHoldsBesideAnOlderVersion(t *testing.T) {
	client := connect(t)
	for _, text := range []string{"token_bucket 100/1h", "sliding_window 100/1h", "sliding_log 100/1h", "sliding_buckets 100/1h"} {
		op := weir.Op{Key: "k", Limit: weir.MustCompile(text), Cost: 2}
		run(t, client, "FLUSHALL")
		store, older := withManySoon(t, storeOn(t, client, Options{})), storeOn(t, client, Options{})
		older.library = olderLibrary()
		fill(t, store, op, 1, 3, time.Minute)
		if _, err := older.Take(t.Context(), nil, op); !errors.Is(err, errForeign) {
			t.Errorf("%s: an older version took from a key with many holds: %v", text, err)
		}
		if n := run(t, client, "STRLEN", store.keyOf(&op)); n != "28" { // builds before v0.1.0 take what is shorter than a state for none
			t.Errorf("%s: there are %s bytes in the place of the state", text, n)
		}
		d := testkit.Must(store.Take(t.Context(), nil, op))(t)
		op.Receipt = d[0].Receipt
		testkit.OK(t, store.Refund(t.Context(), op))
		if d := testkit.Must(store.Peek(t.Context(), nil, op))(t); d[0].Remaining != 94 {
			t.Errorf("%s: with three holds of 2: %+v", text, d[0])
		}
		for i := range 3 {
			testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: numbered(i + 1), Used: func(string, int64) int64 { return 1 }}))(t)
		}
		if d := testkit.Must(older.Peek(t.Context(), nil, op))(t); d[0].Remaining != 97 {
			t.Errorf("%s: when the holds have ended: %+v", text, d[0])
		}
		if keys := run(t, client, "KEYS", "weir:%m*"); keys != "[]" {
			t.Errorf("%s: there are still %s", text, keys)
		}
		fill(t, store, op, 4, 3, time.Minute)
		testkit.OK(t, store.Reset(t.Context(), op))
		if keys := run(t, client, "KEYS", "weir:*{k}*"); keys != "[]" {
			t.Errorf("%s: after a reset, there are still %s", text, keys)
		}
	}
}

// A user who has no right to make sorted sets has room for fewer holds.
func TestManyHoldsWithoutRights(t *testing.T) {
	server := testredis.Start(t)
	user := regexp.MustCompile(` \+z\w+`).ReplaceAllString(rights(t), "")
	server.Do(append([]string{"ACL", "SETUSER"}, strings.Fields(user)[1:]...)...)
	store := withManySoon(t, open(t, "redis://weir:change-me@"+server.Addr+"?timeout=10s"))
	op := weir.Op{Key: "k", Limit: weir.MustCompile("100/1h"), Cost: 2}
	fill(t, store, op, 1, 9, time.Minute)
	for i := range 9 {
		testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: numbered(i + 1), Used: func(string, int64) int64 { return 1 }}))(t)
	}
	if d := testkit.Must(store.Peek(t.Context(), nil, op))(t); d[0].Remaining != 91 {
		t.Errorf("%+v", d[0])
	}
}
