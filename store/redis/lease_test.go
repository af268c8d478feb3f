package redis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// leaseWorld is what a store with leases is to do, in plain Go.
type leaseWorld map[string]*weir.Account

func (w leaseWorld) account(op *weir.Op, now weir.Micros) *weir.Account {
	name := op.Key + op.Limit.KindText()
	if w[name] == nil {
		w[name] = &weir.Account{}
	}
	w[name].Expire(op.Limit, now)
	return w[name]
}

func (w leaseWorld) take(now weir.Micros, ops []weir.Op, charges bool) []weir.Decision {
	var pending []weir.Pending
	for i := range ops {
		a := w.account(&ops[i], now)
		pending = append(pending, weir.Pending{Op: &ops[i], Prev: a.State, Tail: a.Tail, Leased: a.Out})
	}
	if !charges {
		return weir.PeekAll(nil, now, pending)
	}
	decisions := weir.DecideAll(nil, now, pending)
	for i := range ops {
		w.account(&ops[i], now).Keep(ops[i].Limit, pending[i].Next)
	}
	return decisions
}

func (w leaseWorld) lease(now weir.Micros, ops []weir.LeaseOp) []weir.LeaseAnswer {
	var accounts []*weir.Account
	for i := range ops {
		accounts = append(accounts, w.account(&ops[i].Op, now))
	}
	return weir.LeaseAll(nil, now, accounts, ops)
}

var leasedLimits = []string{
	"token_bucket 20/10s", "token_bucket 7/3s burst 30", "leaky_bucket 20/10s", "fixed_window 20/10s", "fixed_window 40/day zone Europe/Berlin",
	"sliding_window 20/10s", "sliding_log 20/10s", "sliding_buckets 20/10s",
}

// Whatever messages say, in whatever order they come, Redis does what package weir says.
func TestLeasesDifferential(t *testing.T) {
	client := connect(t)
	for way, use := range ways {
		for _, text := range leasedLimits {
			t.Run(way+"/"+text, func(t *testing.T) {
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				random := rand.New(rand.NewPCG(seed, 0))
				var clock fake
				store := withMany(use(storeOn(t, client, Options{Clock: clock.Now, Prefix: fmt.Sprintf("%s %s %d:", way, text, seed)})))
				limit, other := weir.MustCompile(text), weir.MustCompile("fixed_window 30/11s")
				n := limit.Limit().N
				world, now := leaseWorld{}, weir.MicrosOf(time.Date(2026, 3, 28, 21, 58, 0, 0, time.UTC))
				ids := []weir.LeaseID{{1}, {2}, {3}}
				seqs := map[weir.LeaseID]int64{}
				var receipts []weir.Receipt
				for step := range 400 {
					switch random.IntN(12) {
					case 0:
						now = now.Add(time.Duration(random.Int64N(int64(30 * time.Second))))
					case 1, 2, 3:
						now = now.Add(time.Duration(random.Int64N(int64(time.Second))))
					case 4:
						now = now.Add(-time.Duration(random.Int64N(int64(2 * time.Second))))
					}
					clock.Set(now)
					op := weir.Op{Key: "k", Limit: limit, Cost: 1 + random.Int64N(4), Leave: random.Int64N(3)}
					second := weir.Op{Key: "k", Limit: other, Cost: 1 + random.Int64N(3)}
					var got, want any
					switch what := random.IntN(10); what {
					case 0:
						ops := []weir.Op{op, second}[:1+random.IntN(2)]
						got, want = testkit.Must(store.Take(t.Context(), nil, ops...))(t), world.take(now, ops, true)
					case 1:
						op.Always = true
						op.Cost = 1 + random.Int64N(3*n)
						got, want = testkit.Must(store.Take(t.Context(), nil, op))(t), world.take(now, []weir.Op{op}, true)
					case 2:
						op.Cost = random.Int64N(n + 2)
						got, want = testkit.Must(store.Peek(t.Context(), nil, op, second))(t), world.take(now, []weir.Op{op, second}, false)
					case 3:
						if len(receipts) == 0 {
							continue
						}
						op.Receipt = receipts[random.IntN(len(receipts))]
						testkit.OK(t, store.Refund(t.Context(), op))
						world.account(&op, now).Refund(&op)
					case 4:
						if random.IntN(4) > 0 {
							continue
						}
						testkit.OK(t, store.Reset(t.Context(), op))
						world.account(&op, now).Record = weir.Record{}
					default:
						ops := []weir.LeaseOp{drawLease(random, op, ids[random.IntN(len(ids))], seqs)}
						if what > 7 {
							ops = append(ops, drawLease(random, second, ids[random.IntN(len(ids))], seqs))
							if random.IntN(3) == 0 {
								ops[1] = weir.LeaseOp{Op: second}
							}
						}
						g, w := testkit.Must(store.Lease(t.Context(), nil, ops...))(t), world.lease(now, ops)
						if g[0].Allowed && g[0].Receipt != 0 {
							receipts = append(receipts, g[0].Receipt)
						}
						got, want = g, w
					}
					if fmt.Sprint(got) != fmt.Sprint(want) {
						t.Fatalf("step %d at %d: Redis says\n%+v, weir\n%+v", step, now, got, want)
					}
				}
			})
		}
	}
}

// A call for many requests on keys with units on lease, by the function of one algorithm, is a sequence of them. What that
// leaves to the general one does not change it.
func TestBatchOnLeasedKeysIsASequence(t *testing.T) {
	client := connect(t)
	var clock fake
	for way, use := range ways {
		for _, text := range leasedLimits {
			t.Run(way+"/"+text, func(t *testing.T) {
				run(t, client, "FLUSHALL")
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				random := rand.New(rand.NewPCG(seed, 0))
				store := withMany(use(storeOn(t, client, Options{Clock: clock.Now})))
				limit := weir.MustCompile(text)
				world, now := leaseWorld{}, weir.MicrosOf(time.Date(2026, 3, 28, 21, 58, 0, 0, time.UTC))
				quick, late := 0, 0
				var taken []weir.Receipt
				for step := range int64(200) {
					now = now.Add(time.Duration(random.Int64N(int64(time.Second))))
					clock.Set(now)
					if step%4 == 0 { // of two keys out of three
						ask := weir.LeaseOp{Op: weir.Op{Key: fmt.Sprint(step % 8 / 4), Limit: limit}, ID: weir.LeaseID{1, byte(step)}, Seq: 1, Want: 3, Term: time.Duration(1+random.IntN(9)) * time.Second}
						got, want := testkit.Must(store.Lease(t.Context(), nil, ask))(t), world.lease(now, []weir.LeaseOp{ask})
						if fmt.Sprint(got) != fmt.Sprint(want) {
							t.Fatalf("step %d: Redis says\n%+v, weir\n%+v", step, got, want)
						}
					}
					var batch []*check
					var want []weir.Decision
					for range 1 + random.IntN(12) {
						op := weir.Op{Key: fmt.Sprint(random.IntN(3)), Limit: limit, Cost: 1 + random.Int64N(3)/2, Leave: random.Int64N(6) / 5, Always: random.IntN(9) == 0}
						verb := take
						if len(taken) > 0 && random.IntN(3) == 0 {
							op.Receipt, op.Cost, op.Always, verb = taken[random.IntN(len(taken))], 5, false, refund
							world.account(&op, now).Refund(&op)
						}
						c := store.checkOf(verb, []weir.Op{op})
						c.asks = verb == take || random.IntN(2) == 0
						batch, want = append(batch, c), append(want, world.take(now, []weir.Op{op}, verb == take)[0])
					}
					testkit.OK(t, store.call(newRequest(batch, isMoved)))
					var again []*check
					for _, c := range batch {
						if errors.Is(c.err, errMoreDue) {
							c.err = nil
							again = append(again, c)
						}
					}
					quick, late = quick+len(batch)-len(again), late+len(again)
					if len(again) > 0 {
						testkit.OK(t, store.call(newRequest(again, hasMany)))
					}
					for i, c := range batch {
						if c.err != nil || c.decisions[0] != want[i] && c.asks {
							t.Fatalf("step %d, request %d of %d, %d: %+v %v, want %+v", step, i, len(batch), c.verb, c.decisions, c.err, want[i])
						}
						if c.decisions[0].Receipt != 0 {
							taken = append(taken[max(0, len(taken)-20):], c.decisions[0].Receipt)
						}
					}
				}
				if quick < 500 || late < 20 {
					t.Errorf("%d were quick, and %d not", quick, late)
				}
			})
		}
	}
}

func drawLease(random *rand.Rand, op weir.Op, id weir.LeaseID, seqs map[weir.LeaseID]int64) weir.LeaseOp {
	seqs[id] += random.Int64N(3)
	op.Cost = max(0, op.Cost-2)
	m := weir.LeaseOp{Op: op, ID: id, Seq: max(1, seqs[id]), Charged: random.Int64N(10), Want: random.Int64N(12), Term: time.Duration(1+random.IntN(5)) * time.Second}
	m.Spent = m.Charged + random.Int64N(5)
	m.Keep = max(0, m.Spent-2+random.Int64N(8))
	return m
}

// Nothing of leases stays in Redis, and until they have ended and what they charge has expired, all of it does. A plain
// check that was told of leases finds them, also if it is a reset.
func TestLeasesEnd(t *testing.T) {
	client := connect(t)
	var clock fake
	now := weir.MicrosOf(time.Date(2026, 1, 1, 12, 0, 7, 0, time.UTC))
	for _, text := range leasedLimits {
		t.Run(text, func(t *testing.T) {
			run(t, client, "FLUSHALL")
			clock.Set(now)
			store := withMany(storeOn(t, client, Options{Clock: clock.Now}))
			op := weir.Op{Key: "k", Limit: weir.MustCompile(text), Cost: 1}
			lease := func(id byte, seq, spent, keep, want int64) weir.LeaseAnswer {
				return testkit.Must(store.Lease(t.Context(), nil, weir.LeaseOp{Op: weir.Op{Key: "k", Limit: op.Limit}, ID: weir.LeaseID{id}, Seq: seq, Spent: spent, Keep: keep, Want: want, Term: time.Second}))(t)[0]
			}
			free := func() int64 {
				// Another one, which knows nothing of leases yet.
				return testkit.Must(withMany(storeOn(t, client, Options{Clock: clock.Now})).Peek(t.Context(), nil, op))(t)[0].Remaining
			}
			n := op.Limit.Capacity()
			granted := lease(1, 1, 0, 0, n).Granted
			if granted != (n+1)/2 || free() != n-granted {
				t.Fatalf("granted %d of %d, %d are free", granted, n, free())
			}
			testkit.OK(t, withMany(storeOn(t, client, Options{Clock: clock.Now})).Reset(t.Context(), op))
			if free() != n-granted {
				t.Errorf("after a reset %d are free", free())
			}
			// It gives back, and is forgotten a second after its end.
			if a := lease(1, 2, 0, 0, 0); a.Granted != 0 || free() != n {
				t.Errorf("after a return: %+v, %d are free", a, free())
			}
			clock.Set(now.Add(2*time.Second + time.Microsecond))
			testkit.Must(store.Take(t.Context(), nil, op))(t)
			if keys := testkit.Must(client.Do(t.Context(), client.B().Keys().Pattern("*").Build()).AsStrSlice())(t); len(keys) != 1 {
				t.Errorf("there are keys %q", keys)
			}
			// Without a word, it is charged when it expires.
			testkit.OK(t, store.Reset(t.Context(), op))
			granted = lease(2, 1, 0, 0, n).Granted
			clock.Set(now.Add(3*time.Second + time.Microsecond))
			if got := free(); got != n-granted {
				t.Errorf("at the end of %d units, %d of %d are free", granted, got, n)
			}
			if d := testkit.Must(store.Take(t.Context(), nil, weir.Op{Key: "k", Limit: op.Limit, Cost: 2, Always: true}))(t)[0]; d.Remaining != n-granted-2 {
				t.Errorf("after 2 more: %+v", d)
			}
		})
	}
}

// By the clock of Redis, all that a lease needs lasts until what it may charge has expired, and not for ever.
func TestLeasesExpire(t *testing.T) {
	client := connect(t)
	for _, text := range leasedLimits {
		t.Run(text, func(t *testing.T) {
			run(t, client, "FLUSHALL")
			store := withMany(storeOn(t, client, Options{}))
			op := weir.Op{Key: "k", Limit: weir.MustCompile(text), Cost: 1}
			for seq := range int64(3) {
				testkit.Must(store.Lease(t.Context(), nil, weir.LeaseOp{Op: op, ID: weir.LeaseID{1}, Seq: 1 + seq, Keep: 3, Want: 3, Term: time.Minute}))(t)
			}
			keys := testkit.Must(client.Do(t.Context(), client.B().Keys().Pattern("*").Build()).AsStrSlice())(t)
			if len(keys) != 3 {
				t.Errorf("there are keys %q", keys)
			}
			least := (time.Minute + max(time.Minute, op.Limit.FullReset()) - time.Second).Milliseconds()
			for _, key := range keys {
				ttl := testkit.Must(client.Do(t.Context(), client.B().Pttl().Key(key).Build()).AsInt64())(t)
				if ttl <= 0 || ttl < least && !strings.Contains(key, movedName) || ttl > 2*least {
					t.Errorf("%s lasts for %d ms, of %d", key, ttl, least)
				}
			}
		})
	}
}

// With a version that does not know of leases, nothing is granted, and what was spent is charged; a version that comes
// later does not touch what is on lease.
func TestLeasesAndOlderVersions(t *testing.T) {
	client := connect(t)
	var clock fake
	clock.Set(weir.MicrosOf(time.Date(2026, 1, 1, 12, 0, 7, 0, time.UTC)))
	store := storeOn(t, client, Options{Clock: clock.Now})
	op := weir.Op{Key: "k", Limit: weir.MustCompile("20/1m"), Cost: 1}
	ask := weir.LeaseOp{Op: op, ID: weir.LeaseID{1}, Seq: 1, Want: 9, Term: time.Second}
	if a := testkit.Must(store.Lease(t.Context(), nil, ask))(t)[0]; !a.Allowed || a.Granted != 0 || a.Remaining != 19 {
		t.Errorf("before all know of leases: %+v", a)
	}
	ask.Seq, ask.Spent = 2, 3
	if a := testkit.Must(store.Lease(t.Context(), nil, ask))(t)[0]; a.Granted != 3 || a.Charged != 3 || a.Remaining != 15 {
		t.Errorf("with 3 spent: %+v", a)
	}
	ask.Seq, ask.Charged = 3, 3
	if a := testkit.Must(withMany(store).Lease(t.Context(), nil, ask))(t)[0]; a.Granted != 10 || a.Remaining != 7 {
		t.Errorf("when all know of leases: %+v", a)
	}
	old := storeOn(t, client, Options{Clock: clock.Now})
	old.library = newLibrary(strings.NewReplacer(`LEASED = '\255leas'`, `LEASED = '\255other'`).Replace)
	testkit.OK(t, old.loadOnce("k"))
	if d, err := old.Take(t.Context(), nil, op); !errors.Is(err, errForeign) {
		t.Errorf("an older version is told %+v, %v", d, err)
	}
}

// A key can have many holds and leases, whichever came first and whichever end first.
func TestLeasesBesideManyHolds(t *testing.T) {
	client := connect(t)
	for _, text := range []string{"token_bucket 100/1h", "fixed_window 100/1h", "sliding_window 100/1h", "sliding_log 100/1h", "sliding_buckets 100/1h"} {
		for _, leaseFirst := range []bool{true, false} {
			t.Run(fmt.Sprint(text, leaseFirst), func(t *testing.T) {
				run(t, client, "FLUSHALL")
				var clock fake
				clock.Set(weir.MicrosOf(time.Date(2026, 1, 1, 12, 0, 7, 0, time.UTC)))
				store := withManySoon(t, storeOn(t, client, Options{Clock: clock.Now}))
				op := weir.Op{Key: "k", Limit: weir.MustCompile(text), Cost: 2}
				lease := func(seq, spent, keep, want int64) weir.LeaseAnswer {
					return testkit.Must(store.Lease(t.Context(), nil, weir.LeaseOp{Op: weir.Op{Key: "k", Limit: op.Limit}, ID: weir.LeaseID{1}, Seq: seq, Spent: spent, Keep: keep, Want: want, Term: time.Minute}))(t)[0]
				}
				free := func(want int64) {
					t.Helper()
					if d := testkit.Must(store.Peek(t.Context(), nil, op))(t)[0]; d.Remaining != want {
						t.Fatalf("%d are free, not %d", d.Remaining, want)
					}
				}
				settle := func(from, to int, used int64) {
					t.Helper()
					for id := from; id < to; id++ {
						settled := testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: numbered(id), Used: func(string, int64) int64 { return used }}))(t)
						if settled.State != weir.HoldSettled {
							t.Fatalf("hold %d: %+v", id, settled)
						}
					}
				}
				if leaseFirst {
					lease(1, 0, 0, 10)
				}
				fill(t, store, op, 0, 5, time.Hour)
				if !leaseFirst {
					lease(1, 0, 0, 10)
				}
				free(80)
				fill(t, store, op, 5, 5, time.Hour)
				free(70)
				settle(0, 4, 1)
				free(74)
				if leaseFirst { // holds end first
					settle(4, 10, 0)
					free(86)
					lease(2, 4, 4, 0)
					free(92)
				} else {
					lease(2, 4, 4, 0)
				}
				clock.Set(clock.Now().Add(2*time.Minute + time.Second))
				if !leaseFirst {
					testkit.Must(store.Peek(t.Context(), nil, op))(t)
					settle(4, 10, 0)
				}
				if d := testkit.Must(store.Peek(t.Context(), nil, op))(t)[0]; d.Remaining < 92 {
					t.Errorf("in the end: %+v", d)
				}
				keys := testkit.Must(client.Do(t.Context(), client.B().Keys().Pattern("*").Build()).AsStrSlice())(t)
				if left := slices.DeleteFunc(keys, func(key string) bool { return strings.Contains(key, recordName) || strings.Contains(key, heldName) }); len(left) > 1 {
					t.Errorf("there are keys %q", left)
				}
			})
		}
	}
}
