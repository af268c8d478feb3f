package lease

import (
	"fmt"
	"hash/maphash"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// A key that is used less than three times within a horizon costs what it costs without leases.
func TestSeldomUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		for range 100 {
			take(t, s, "k", hourly, 1)
			take(t, s, "k", hourly, 1)
			time.Sleep(time.Second)
		}
		if n.takes.Load() != 200 || n.leases.Load() != 0 || s.Stats().Keys != 0 {
			t.Errorf("%d takes, %d messages, %+v", n.takes.Load(), n.leases.Load(), s.Stats())
		}
	})
}

// Requests of a key in steady use never wait: more units come before the last one is spent.
func TestRefillHidesTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := opened(t, 50*time.Millisecond)
		limit := weir.MustCompile("fixed_window 1000000/1h")
		for round := range 5 {
			asked := s.Stats().Asked
			for range 1000 {
				take(t, s, "k", limit, 1)
				time.Sleep(time.Millisecond)
			}
			if asked = s.Stats().Asked - asked; round > 0 && asked > 2 {
				t.Errorf("in second %d, %d of 1000 requests asked: %+v", round, asked, s.Stats())
			}
		}
		if got := s.Stats(); got.Messages > 200 {
			t.Errorf("%+v", got)
		}
	})
}

// What is not used any more goes back, and the key is forgotten.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		taken := warm(t, s, "k", hourly)
		time.Sleep(time.Second + 100*time.Millisecond)
		if got, stats := remaining(t, n, hourly), s.Stats(); got != 1000-taken || stats.Keys != 0 || stats.Leased != 0 || stats.Returned == 0 {
			t.Errorf("%d remain after %d of 1000: %+v", got, taken, stats)
		}
	})
}

// A key in use keeps its lease longer than a term.
func TestRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		warm(t, s, "k", hourly)
		taken, asked := int64(0), s.Stats().Asked
		for range 50 {
			take(t, s, "k", hourly, 1)
			taken++
			time.Sleep(300 * time.Millisecond)
		}
		stats := s.Stats()
		if stats.Asked != asked || stats.Lost != 0 {
			t.Errorf("%d requests asked, want %d: %+v", stats.Asked, asked, stats)
		}
		if calls := n.leases.Load(); calls > 40 {
			t.Errorf("%d messages in 15s", calls)
		}
	})
}

// Own units are given back first, so that a request which needs more than is held is allowed if that suffices.
func TestOwnUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := weir.MustCompile("fixed_window 100/1h")
		s, n := opened(t, time.Millisecond)
		taken := warm(t, s, "k", limit)
		held := s.Stats().Leased
		if d := take(t, s, "k", limit, 100-taken-1); !d.Allowed || d.Remaining != 1 {
			t.Errorf("all but one, with %d held: %+v", held, d)
		}
		if d := take(t, s, "k", limit, 2); d.Allowed || d.Remaining != 1 {
			t.Errorf("one more than there are: %+v", d)
		}
		if d := take(t, s, "k", limit, 1); !d.Allowed || d.Remaining != 0 {
			t.Errorf("the last one: %+v", d)
		}
		if got, held := remaining(t, n, limit), s.Stats().Leased; got != 0 || held != 0 {
			t.Errorf("%d remain, %d on lease", got, held)
		}
	})
}

// A denial is remembered for a while: for requests that cost as much or more.
func TestDenialIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := weir.MustCompile("fixed_window 40/1h")
		s, n := opened(t, time.Millisecond)
		exhaust(t, s, n, limit)
		calls := n.calls.Load()
		var d weir.Decision
		for cost := range int64(100) {
			if d = take(t, s, "k", limit, 1+cost%50); d.Allowed || d.Remaining != 0 || d.Limit != 40 {
				t.Fatalf("%+v", d)
			}
			if never := 1+cost%50 > 40; never != (d.RetryAfter == weir.Never) {
				t.Fatalf("cost %d: %+v", 1+cost%50, d)
			}
			time.Sleep(time.Millisecond)
		}
		if n.calls.Load() != calls || s.Stats().Denied < 100 {
			t.Errorf("%d calls for 100 denials, %+v", n.calls.Load()-calls, s.Stats())
		}
		exact := testkit.Must(n.reference.Peek(t.Context(), nil, weir.Op{Key: "k", Limit: limit, Cost: 1}))(t)[0]
		d = take(t, s, "k", limit, 1)
		if d.RetryAfter < exact.RetryAfter || d.RetryAfter > exact.RetryAfter+10*time.Millisecond || d.ResetAt != exact.ResetAt || d.ResetAfter > d.RetryAfter {
			t.Errorf("%+v, exactly %+v", d, exact)
		}
		time.Sleep(time.Second)
		take(t, s, "k", limit, 1)
		if n.calls.Load() == calls {
			t.Error("the store was not asked again after a second")
		}
		for name, forget := range map[string]func(op weir.Op) error{
			"refund": func(op weir.Op) error { op.Receipt = weir.Latest; return s.Refund(t.Context(), op) },
			"reset":  func(op weir.Op) error { return s.Reset(t.Context(), op) },
		} {
			for take(t, s, "k", limit, 1).Allowed {
			}
			testkit.OK(t, forget(weir.Op{Key: "k", Limit: limit, Cost: 1}))
			if d := take(t, s, "k", limit, 1); !d.Allowed {
				t.Errorf("after a %s: %+v", name, d)
			}
		}
	})
}

// A short wait is not remembered much longer than it is, and RetryAfter tells no less than how long it is remembered.
func TestShortDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := weir.MustCompile("token_bucket 36000/1h burst 20") // a unit in 100ms
		s, n := opened(t, 0)
		exhaust(t, s, n, limit)
		time.Sleep(time.Millisecond)
		d := take(t, s, "k", limit, 1)
		calls := n.calls.Load()
		if d.Allowed || d.RetryAfter < 95*time.Millisecond || d.RetryAfter > 250*time.Millisecond {
			t.Fatalf("%+v", d)
		}
		time.Sleep(d.RetryAfter - time.Millisecond)
		if d := take(t, s, "k", limit, 1); d.Allowed || n.calls.Load() != calls {
			t.Errorf("%+v", d)
		}
		time.Sleep(time.Millisecond)
		if d := take(t, s, "k", limit, 1); !d.Allowed {
			t.Errorf("after what it said: %+v", d)
		}
	})
}

// Tiers share the state of a key. What was leased under one N, or leaving less for others, serves no other request.
func TestUnitsServeTheirOwn(t *testing.T) {
	free, pro := weir.MustCompile("fixed_window 20/1h"), weir.MustCompile("fixed_window 1000/1h")
	for name, other := range map[string]weir.Op{
		"tier":  {Key: "k", Limit: free, Cost: 1},
		"leave": {Key: "k", Limit: pro, Cost: 1, Leave: 990},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := opened(t, time.Millisecond)
			warm(t, s, "k", pro)
			for range 20 {
				take(t, s, "k", pro, 1)
			}
			if s.Stats().Leased == 0 {
				t.Fatal("nothing is leased")
			}
			for range 10 {
				d := testkit.Must(s.Take(t.Context(), nil, other))(t)[0]
				if d.Allowed {
					t.Fatalf("%s: allowed by units of another: %+v", name, d)
				}
			}
			if d := take(t, s, "k", pro, 1); !d.Allowed {
				t.Errorf("%+v", d)
			}
		})
	}
}

// A lower limit, of a rule, another tier or an override, applies at once where it is known, whatever is held under the one before. That is returned,
// and the limit before applies again when it is back.
func TestLimitIsLowered(t *testing.T) {
	for _, text := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log", "sliding_buckets"} {
		synctest.Test(t, func(t *testing.T) {
			s, n := opened(t, time.Millisecond)
			high, low := weir.MustCompile(text+" 1000/1h"), weir.MustCompile(text+" 300/1h")
			for range 400 {
				if d := take(t, s, "k", high, 1); !d.Allowed {
					t.Fatalf("%s: %+v", text, d)
				}
				time.Sleep(time.Millisecond)
			}
			if s.Stats().Leased == 0 {
				t.Fatal("nothing is leased")
			}
			for range 20 {
				if d := take(t, s, "k", low, 1); d.Allowed {
					t.Fatalf("%s: %+v", text, d)
				}
			}
			time.Sleep(2 * DefaultTerm)
			synctest.Wait()
			if out := n.Account("k", high).Out; out != 0 {
				t.Errorf("%s: %d are still on lease", text, out)
			}
			if d := take(t, s, "k", high, 1); !d.Allowed {
				t.Errorf("%s: the limit before: %+v", text, d)
			}
		})
	}
}

// What is held for requests that leave more remains for those that leave less, and not the other way round.
func TestPeekCountsWhatServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		peek := func(store weir.Store, leave, cost int64) weir.Decision {
			return testkit.Must(store.Peek(t.Context(), nil, weir.Op{Key: "k", Limit: hourly, Cost: cost, Leave: leave}))(t)[0]
		}
		warm(t, s, "k", hourly)
		held := s.Stats().Leased
		for leave, want := range map[int64]int64{0: held, 1: 0, 900: 0} {
			if got := peek(s, leave, 1).Remaining - peek(n, leave, 1).Remaining; got != want {
				t.Errorf("leaving %d, %d of the %d that are held remain; want %d", leave, got, held, want)
			}
		}
		free := peek(n, 0, 1).Remaining
		if d := peek(s, 0, free+held); !d.Allowed {
			t.Errorf("a request can give back its own %d units: %+v", held, d)
		}
		free = peek(n, 1, 1).Remaining
		if d := peek(s, 1, free+1); d.Allowed {
			t.Errorf("allowed by units of others: %+v", d)
		}
	})
}

// Units that were granted although more was left for others serve a request that leaves less, such as one of a higher priority.
func TestUnitsThatLeaveMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := opened(t, time.Millisecond)
		low, high := weir.Op{Key: "k", Limit: hourly, Cost: 1, Leave: 100}, weir.Op{Key: "k", Limit: hourly, Cost: 1}
		for range 5 {
			testkit.Must(s.Take(t.Context(), nil, low))(t)
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		settle := func() { // no message is under way
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
		}
		settle()
		held, asked := s.Stats().Leased, s.Stats().Asked
		d := testkit.Must(s.Take(t.Context(), nil, high))(t)[0]
		if s.Stats().Leased != held-1 || s.Stats().Asked != asked || !d.Allowed || d.Receipt < localReceipt {
			t.Errorf("%+v, %d asked, %d of %d held", d, s.Stats().Asked-asked, s.Stats().Leased, held)
		}
		settle()
		for _, peeked := range testkit.Must(s.Peek(t.Context(), nil, high))(t) {
			if peeked.Remaining != 994 || peeked.Leased != 0 {
				t.Errorf("6 of 1000 were taken: %+v", peeked)
			}
		}
		all := weir.Op{Key: "k", Limit: hourly, Cost: 994}
		if d := testkit.Must(s.Peek(t.Context(), nil, all))(t)[0]; d.Allowed {
			t.Errorf("allowed by what others would have to give back: %+v", d)
		}
		high.Receipt = d.Receipt
		testkit.OK(t, s.Refund(t.Context(), high))
		if d := testkit.Must(s.Peek(t.Context(), nil, weir.Op{Key: "k", Limit: hourly, Cost: 1}))(t)[0]; d.Remaining != 995 {
			t.Errorf("5 of 1000 were taken, and 1 given back: %+v", d)
		}
	})
}

// A limit that was compiled again is the same one.
func TestCompiledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := opened(t, time.Millisecond)
		warm(t, s, "k", hourly)
		asked := s.Stats().Asked
		take(t, s, "k", weir.MustCompile("fixed_window 1000/1h"), 1)
		if s.Stats().Asked != asked {
			t.Error("the store was asked")
		}
	})
}

// All of several limits are charged, or none.
func TestAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		tight, wide := weir.MustCompile("fixed_window 60/1h"), weir.MustCompile("sliding_log 1000/1h")
		ops := []weir.Op{{Key: "k", Limit: wide, Cost: 1}, {Key: "k", Limit: tight, Cost: 1}}
		allowed := 0
		var d []weir.Decision
		for range 500 {
			d = testkit.Must(s.Take(t.Context(), d[:0], ops...))(t)
			if weir.Allowed(d) {
				allowed++
			} else if !d[0].Allowed || d[0].Remaining != int64(1000-allowed) || d[1].Allowed || d[1].RetryAfter <= 0 {
				t.Fatalf("%d allowed: %+v", allowed, d)
			}
			synctest.Wait()
		}
		stats := s.Stats()
		if allowed != 60 || stats.Local < 30 || stats.Denied < 400 {
			t.Errorf("%d of 60 allowed: %+v", allowed, stats)
		}
		if calls := n.calls.Load(); calls > 40 {
			t.Errorf("%d calls", calls)
		}
		testkit.OK(t, s.Close(t.Context()))
		if got := remaining(t, n, wide); got != 940 {
			t.Errorf("%d remain of 1000 after 60", got)
		}
	})
}

// If one limit of a request cannot be leased, or the ops are not plain, the store decides: also with units on lease.
func TestNotLeasable(t *testing.T) {
	shape := weir.MustCompile("leaky_bucket 1000/1h shape")
	for name, ops := range map[string][]weir.Op{
		"a limit":  {{Key: "k", Limit: hourly, Cost: 1}, {Key: "k", Limit: shape, Cost: 1, MaxDelay: time.Hour}},
		"always":   {{Key: "k", Limit: hourly, Cost: 1, Always: true}},
		"look":     {{Key: "k", Limit: hourly, Cost: 1, Look: true}},
		"together": {{Key: "k", Limit: hourly, Cost: 1}, {Key: "k", Limit: hourly, Cost: 2}},
		"short":    {{Key: "k", Limit: weir.MustCompile("fixed_window 1000/50ms"), Cost: 1}},
		"none":     {{Key: "k", Limit: hourly, Cost: 1, Leave: 1000}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, n := opened(t, time.Microsecond)
			if name != "short" && name != "none" {
				warm(t, s, "k", hourly)
			}
			before := n.calls.Load()
			for range 10 {
				testkit.Must(s.Take(t.Context(), nil, ops...))(t)
			}
			if got := n.calls.Load() - before; got < 10 {
				t.Errorf("%s: %d calls for 10 requests", name, got)
			}
		})
	}
}

// Keys that are used in turns have leases, also those that are counted in the same place.
func TestKeysInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, 0)
		const keys = 2000
		for range 12 {
			for i := range keys {
				take(t, s, fmt.Sprint("k", i), hourly, 1)
			}
		}
		if stats := s.Stats(); stats.Keys != keys {
			t.Errorf("%d of %d keys have leases, after %d calls", stats.Keys, keys, n.calls.Load())
		}
	})
}

// A key that is used once does not keep another one, which is counted in its place, from having a lease.
func TestKeysInOnePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := opened(t, 0)
		place := func(key string) *sighting {
			hash := maphash.String(s.seed, key)
			_, seen := s.shardOf(hash).sightingLocked(hash, &weir.Op{Limit: hourly})
			return seen
		}
		other := 0
		for place(fmt.Sprint(other)) != place("k") {
			other++
		}
		take(t, s, fmt.Sprint(other), hourly, 1)
		for range maxOthers + seldom {
			take(t, s, "k", hourly, 1)
		}
		if s.Stats().Keys != 0 {
			t.Error("the first key was forgotten too early")
		}
		if take(t, s, "k", hourly, 1); s.Stats().Keys != 1 {
			t.Errorf("%+v", s.Stats())
		}
	})
}

func TestMaxKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{reference: newReference(wallNow)}
		s := holder(t, n, Options{MaxKeys: 2})
		for _, key := range []string{"a", "b", "c"} {
			for range 5 {
				take(t, s, key, hourly, 1)
			}
		}
		if stats := s.Stats(); stats.Keys != 2 || stats.Full != 3 {
			t.Errorf("%+v", stats)
		}
	})
}

// patient is a store that says how long its calls may take.
type patient struct{ weir.LeaseStore }

func (patient) Timeout() time.Duration { return 70 * time.Millisecond }

// Engines ask a store for that, so a store around it tells, too.
func TestTimeoutOfTheStore(t *testing.T) {
	for want, store := range map[time.Duration]weir.LeaseStore{0: newReference(wallNow), 70 * time.Millisecond: patient{newReference(wallNow)}} {
		if got := New(store, Options{}).Timeout(); got != want {
			t.Errorf("it is %v, not %v", got, want)
		}
	}
}

// What another process has on lease is neither used nor does it remain, and each process tells so of the other.
func TestLeasedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		other := holder(t, n, Options{})
		spent := warm(t, s, "k", hourly) + warm(t, other, "k", hourly)
		for _, one := range []*Store{s, other} {
			d := testkit.Must(one.Peek(t.Context(), nil, weir.Op{Key: "k", Limit: hourly}))(t)[0]
			elsewhere := s.Stats().Leased + other.Stats().Leased - one.Stats().Leased
			// What the other one has spent and not reported is as if it were on lease.
			if used := d.Limit - d.Remaining - d.Leased; d.Leased < elsewhere || used > spent || used+d.Leased != spent+elsewhere {
				t.Errorf("%d remain, %d on lease; %d are on lease elsewhere, and %d were spent", d.Remaining, d.Leased, elsewhere, spent)
			}
		}
		asked := take(t, other, "k", hourly, other.Stats().Leased+1)
		held := s.Stats().Leased
		if local := take(t, other, "k", hourly, 1); local.Receipt < localReceipt || local.Leased < held || local.Leased != asked.Leased {
			t.Errorf("%+v, and before %+v, but %d are on lease elsewhere", local, asked, held)
		}
		testkit.OK(t, s.Close(t.Context()))
		if d := testkit.Must(other.Peek(t.Context(), nil, weir.Op{Key: "k", Limit: hourly}))(t)[0]; d.Leased != 0 {
			t.Errorf("%+v after the other one has returned what it had", d)
		}
	})
}

// What happens is counted by the names of limits, which are the ids of rules.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := opened(t, time.Millisecond)
		named := func(name string, count int64) *weir.Compiled {
			limit := weir.Limit{Name: name, Algorithm: weir.FixedWindow, N: count, Period: time.Hour}
			return testkit.Must(limit.Compile())(t)
		}
		api, login := named("api", 1000), named("login", 200)
		for range 300 {
			testkit.Must(s.Take(t.Context(), nil, weir.Op{Key: "k", Limit: api, Cost: 1}, weir.Op{Key: "k", Limit: login, Cost: 1}))(t)
			time.Sleep(time.Millisecond)
		}
		all := s.Stats()
		if len(all.Names) != 2 || all.Names[0].Name != "api" || all.Names[1].Name != "login" {
			t.Fatalf("%+v", all)
		}
		for _, one := range all.Names {
			if one.Local != all.Local || one.Denied != all.Denied || one.Asked != all.Asked || one.Local < 150 || one.Denied < 50 || one.Asked == 0 {
				t.Errorf("%+v of %+v", one, all)
			}
		}
		if got := all.Names[0].Leased + all.Names[1].Leased; got != all.Leased || all.Names[0].Leased == 0 {
			t.Errorf("%+v", all)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		idle := s.Stats()
		if idle.Leased != 0 || idle.Names[0].Returned < all.Names[0].Leased || idle.Names[0].Local != all.Local || idle.Keys != 0 {
			t.Errorf("%+v when nothing is used, and before %+v", idle, all)
		}
		if n.Account("k", api).Out != 0 {
			t.Error("something is on lease")
		}
		for i := range MaxNames + 5 {
			s.names.of(named(fmt.Sprint("rule", i), 10))
		}
		if names := s.Stats().Names; len(names) != MaxNames+1 || names[0].Name != "" {
			t.Errorf("%d names", len(names))
		}
	})
}
