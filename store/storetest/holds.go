package storetest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/traffic/scenario"
)

// RunHolds runs the part of the suite that is about holds. The store must be a
// [weir.HoldStore].
func RunHolds(t *testing.T, open Open) {
	t.Run("Scenarios", func(t *testing.T) { playScenarios(t, open, true) })
	t.Run("Model", func(t *testing.T) { testHoldModel(t, open) })
	t.Run("Once", func(t *testing.T) { testHoldOnce(t, open) })
	t.Run("Late", func(t *testing.T) { testHoldLate(t, open) })
	t.Run("Expiry", func(t *testing.T) { testHoldExpiry(t, open) })
	t.Run("Places", func(t *testing.T) { testHoldPlaces(t, open) })
	t.Run("Full", func(t *testing.T) { testHoldFull(t, open) })
	t.Run("Exactly", func(t *testing.T) { testHoldExactly(t, open) })
	t.Run("Reserved", func(t *testing.T) { testHoldReserved(t, open) })
	t.Run("Bad", func(t *testing.T) { testHoldBad(t, open) })
}

func holder(t *testing.T, open Open) (weir.HoldStore, Subject) {
	t.Helper()
	subject := opened(t, open)
	return subject.Store.(weir.HoldStore), subject
}

// holdID makes an id of a number; other tests may use the same store.
func holdID(n uint64) (id weir.HoldID) {
	binary.BigEndian.PutUint64(id[8:], n)
	return id
}

// testHoldModel plays random histories with holds to the store and to the bare
// arithmetic, and demands the same answers at every step.
func testHoldModel(t *testing.T, open Open) {
	all := append(limits(t, "20"), releasing(t, limits(t, "20"))...)
	for _, limit := range all {
		t.Run(limit.Limit().String(), func(t *testing.T) { holdHistory(t, open, []*weir.Compiled{limit}, 200) })
	}
	t.Run("several limits", func(t *testing.T) { holdHistory(t, open, limits(t, "20"), 800) })
	t.Run("several limits that release", func(t *testing.T) { holdHistory(t, open, releasing(t, limits(t, "20")), 800) })
}

// releasing are the same limits, but holds that expire give their units back.
func releasing(t *testing.T, all []*weir.Compiled) []*weir.Compiled {
	t.Helper()
	all = slices.DeleteFunc(all, func(c *weir.Compiled) bool { return c.Algorithm() == weir.InFlight }) // always do
	for i := range all {
		l := all[i].Limit()
		l.Release = true
		all[i] = testkit.Must(l.Compile())(t)
	}
	return all
}

func holdHistory(t *testing.T, open Open, pool []*weir.Compiled, steps int) {
	fullHistory(t, open, pool, 0, steps, weir.MaxHolds)
}

// fullHistory begins with many holds on one key, and then is of any calls. A key has at most so many holds.
func fullHistory(t *testing.T, open Open, pool []*weir.Compiled, many, steps, most int) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	model := scenario.NewModel()
	model.MaxHolds = most
	store, subject := holder(t, open)
	now := start
	var ids []weir.HoldID
	oneKey := many > 0 || most < weir.MaxHolds
	longest := map[bool]time.Duration{false: time.Minute, true: 10 * time.Minute}[oneKey] // so that there are as many
	for step := range many + steps {
		if step < many {
			now += weir.Micros(random.Int64N(1000))
		} else if random.IntN(3) > 0 {
			now += weir.Micros(random.Int64N(8_000_000))
		}
		model.Now = now
		subject.Set(now)
		ops := draw(random, pool)
		for i := range ops {
			if ops[i].MaxDelay = 0; oneKey {
				ops[i].Key, ops[i].Leave = "k", 0
			}
		}
		ops = apart(ops)
		var got, want any
		var what string
		both := func(ask func(weir.HoldStore) (any, error)) {
			t.Helper()
			var err error
			if got, err = ask(store); err != nil {
				t.Fatalf("seed %d, step %d: %s: %v", seed, step, what, err)
			}
			want = testkit.Must(ask(model))(t)
		}
		switch call := random.IntN(10); {
		case step < many || call < 4:
			id := holdID(uint64(step))
			ids = append(ids[max(0, len(ids)-40-many):], id)
			r := weir.Reservation{ID: id, TTL: longest * time.Duration(1+random.Int64N(60)) / 60, Client: random.Uint32N(4)}
			for i := range ops {
				ops[i].Cost += random.Int64N(6)
				ops[i].Final = random.IntN(4) == 0
				r.Tags = append(r.Tags, fmt.Sprint(i))
			}
			held := &ops[random.IntN(len(ops))]
			held.Look, held.Final = false, false // there must be something to hold
			what = fmt.Sprintf("reserve %v %+v", r, ops)
			both(func(s weir.HoldStore) (any, error) { return s.Reserve(t.Context(), nil, r, ops...) })
		case call < 7:
			if len(ids) == 0 {
				continue
			}
			s := weir.Settlement{ID: ids[random.IntN(len(ids))]}
			more, less := random.Int64N(4)*random.Int64N(20), random.Int64N(3)
			switch random.IntN(4) {
			case 0:
				s.TTL, s.Renew = time.Duration(1+random.Int64N(80))*time.Second, random.IntN(2) == 0
			case 1:
				s.Used = func(string, int64) int64 { return 0 }
			default:
				s.Used = func(tag string, cost int64) int64 { return cost/(1+less) + more*int64(len(tag)) }
			}
			what = fmt.Sprintf("settle %v", s)
			both(func(h weir.HoldStore) (any, error) { return h.Settle(t.Context(), s) })
		case call == 7:
			what = fmt.Sprintf("take %+v", ops)
			both(func(s weir.HoldStore) (any, error) { return s.Take(t.Context(), nil, ops...) })
		case call == 8:
			what = fmt.Sprintf("peek %+v", ops)
			both(func(s weir.HoldStore) (any, error) { return s.Peek(t.Context(), nil, ops...) })
		default:
			if many > 0 && step < many+steps-20 || random.IntN(8) > 0 {
				continue
			}
			what = "reset"
			both(func(s weir.HoldStore) (any, error) { return nil, s.Reset(t.Context(), ops...) })
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d, step %d at %d: %s:\n got %+v\nwant %+v", seed, step, now, what, got, want)
		}
	}
}

// apart leaves out ops that share a state with one before.
func apart(ops []weir.Op) []weir.Op {
	var left []weir.Op
	seen := map[string]bool{}
	for _, op := range ops {
		if name := op.Limit.KindText() + " " + op.Key; !seen[name] {
			seen[name] = true
			left = append(left, op)
		}
	}
	return left
}

// testHoldOnce: a repeated settlement changes nothing, whatever it says, and has the
// answer of the first.
func testHoldOnce(t *testing.T, open Open) {
	for _, limit := range limits(t, "20") {
		if limit.Limit().Shape {
			continue
		}
		t.Run(limit.Limit().String(), func(t *testing.T) {
			store, subject := holder(t, open)
			op := weir.Op{Key: "k", Limit: limit, Cost: 10}
			testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: holdID(1), TTL: time.Hour}, op))(t)
			var first weir.Settled
			for i, used := range []int64{4, 0, 9, 100} {
				s := testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: holdID(1), Used: func(string, int64) int64 { return used }}))(t)
				if s.Repeated != (i > 0) {
					t.Errorf("settlement %d: %+v", i+1, s)
				}
				if want := map[bool]weir.Micros{false: start.Add(time.Hour)}[s.Repeated]; s.Until != want {
					t.Errorf("settlement %d: until %v, want %v", i+1, s.Until, want)
				}
				if s.Repeated, s.Until = false, 0; i == 0 {
					first = s
				}
				if !reflect.DeepEqual(s, first) || s.State != weir.HoldSettled || s.Parts[0].Used != 4 {
					t.Errorf("settlement %d: %+v, want %+v", i+1, s, first)
				}
			}
			if d := peek(t, store, op); d.Remaining != 16 {
				t.Errorf("%d remain, want 16", d.Remaining)
			}
			extended := testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: holdID(1), TTL: time.Minute}))(t)
			if extended.State != weir.HoldSettled {
				t.Errorf("an ended hold was extended: %+v", extended)
			}
			subject.Set(start.Add(time.Hour - time.Microsecond))
			if s := settleZero(t, store, 1); s.State != weir.HoldSettled {
				t.Errorf("before it would have expired: %+v", s)
			}
			subject.Set(start.Add(2 * time.Hour))
			if s := settleZero(t, store, 1); s.State != weir.HoldUnknown {
				t.Errorf("long after: %+v", s)
			}
		})
	}
}

// testHoldLate: a hold that the store does not know is charged once, if its ops are known, and
// its reservation comes too late. One that the store knows is settled as any other.
func testHoldLate(t *testing.T, open Open) {
	for _, limit := range limits(t, "20") {
		if limit.Limit().Shape {
			continue
		}
		t.Run(limit.Limit().String(), func(t *testing.T) {
			store, _ := holder(t, open)
			ops := []weir.Op{{Key: "k", Limit: limit, Cost: 10}, {Key: "other", Limit: limit, Cost: 10}}
			settle := func(id uint64, used, want, remain int64, repeated bool) {
				t.Helper()
				s := testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: holdID(id), Ops: ops, Tags: []string{"a", "b"}, Used: func(tag string, cost int64) int64 {
					if cost != 10 {
						t.Errorf("%s has cost %d", tag, cost)
					}
					return used
				}}))(t)
				parts := []weir.SettledPart{{Tag: "a", Cost: 10, Used: want}, {Tag: "b", Cost: 10, Used: want}}
				if s.State != weir.HoldSettled || s.Repeated != repeated || !reflect.DeepEqual(s.Parts, parts) {
					t.Errorf("%+v, want %+v", s, parts)
				}
				for _, op := range ops {
					if d := peek(t, store, op); d.Remaining != remain {
						t.Errorf("%s: %d remain, want %d", op.Key, d.Remaining, remain)
					}
				}
			}
			settle(1, 4, 4, 16, false)
			settle(1, 5, 4, 16, true)
			settle(2, 0, 0, 16, false)
			for _, id := range []uint64{1, 2} {
				reserved, err := store.Reserve(t.Context(), nil, weir.Reservation{ID: holdID(id), TTL: time.Hour}, ops...)
				if err == nil && weir.Allowed(reserved) {
					t.Errorf("it was reserved after its end: %+v", reserved)
				}
				settle(id, 9, 4*int64(2-id), 16, true)
			}
			testkit.Must(store.Reserve(t.Context(), nil, weir.Reservation{ID: holdID(3), TTL: time.Hour, Tags: []string{"a", "b"}}, ops...))(t)
			settle(3, 7, 7, 9, false)
			if _, err := store.Settle(t.Context(), weir.Settlement{ID: holdID(4), Ops: ops, Tags: []string{"a"}, Used: func(string, int64) int64 { return 1 }}); err == nil {
				t.Error("one tag for two ops is accepted")
			}
		})
	}
}

func settleZero(t *testing.T, store weir.HoldStore, id uint64) weir.Settled {
	t.Helper()
	return testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: holdID(id), Used: func(string, int64) int64 { return 0 }}))(t)
}

// testHoldExpiry: a hold ends at its time, with or without what it was charged.
func testHoldExpiry(t *testing.T, open Open) {
	for _, release := range []bool{false, true} {
		store, subject := holder(t, open)
		l := weir.MustParseLimit("sliding_log 20/1h")
		l.Release = release
		op := weir.Op{Key: "k", Limit: testkit.Must(l.Compile())(t), Cost: 20}
		r := weir.Reservation{ID: holdID(1), TTL: 10 * time.Second}
		testkit.Must(store.Reserve(t.Context(), nil, r, op))(t)
		subject.Set(start.Add(9 * time.Second))
		if s := testkit.Must(store.Settle(t.Context(), weir.Settlement{ID: holdID(1), TTL: 5 * time.Second}))(t); s.State != weir.HoldOpen || s.Expires != start.Add(14*time.Second) || s.Until != start.Add(10*time.Second) {
			t.Errorf("extended: %+v", s)
		}
		subject.Set(start.Add(14*time.Second - time.Microsecond))
		if d := peek(t, store, op); d.Remaining != 0 {
			t.Errorf("%d remain before the hold expires", d.Remaining)
		}
		subject.Set(start.Add(14 * time.Second))
		want := int64(0)
		if release {
			want = 20
		}
		if d := peek(t, store, op); d.Remaining != want {
			t.Errorf("release %v: %d remain, want %d", release, d.Remaining, want)
		}
		if s := settleZero(t, store, 1); s.State != weir.HoldExpired || peek(t, store, op).Remaining != want {
			t.Errorf("settled too late: %+v", s)
		}
		subject.Set(start.Add(74 * time.Second))
		if s := settleZero(t, store, 1); s.State != weir.HoldUnknown {
			t.Errorf("long after: %+v", s)
		}
	}
}

// testHoldExactly has goroutines reserve too much and settle with what they used: as
// many units are charged as were used, and never more than N are held.
func testHoldExactly(t *testing.T, open Open) {
	store, _ := holder(t, open)
	op := weir.Op{Key: "k", Limit: weir.MustCompile("sliding_log 1000/1h"), Cost: 30}
	settled := together(t, 16, 30, func(g int) (bool, error) {
		id := weir.HoldID{1, byte(g)}
		binary.BigEndian.PutUint64(id[8:], rand.Uint64())
		d, err := store.Reserve(t.Context(), nil, weir.Reservation{ID: id}, op)
		if err != nil || !d[0].Allowed {
			return false, err
		}
		_, err = store.Settle(t.Context(), weir.Settlement{ID: id, Used: func(string, int64) int64 { return 2 }})
		return true, err
	})
	if d := peek(t, store, op); d.Remaining != 1000-2*settled || settled == 0 {
		t.Errorf("%d were settled, and %d remain", settled, d.Remaining)
	}
}

// testHoldBad: what cannot be reserved is an error that says why.
func testHoldBad(t *testing.T, open Open) {
	store, _ := holder(t, open)
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
	always, look, final := op, op, op
	always.Always, look.Look, final.Final = true, true, true
	for what, ask := range map[string]func() error{
		"ttl": func() error { return testkit.Err(store.Reserve(t.Context(), nil, weir.Reservation{TTL: -1}, op)) },
		"ttl ": func() error {
			return testkit.Err(store.Reserve(t.Context(), nil, weir.Reservation{TTL: weir.MaxHoldTTL + 1}, op))
		},
		"ttl  ":  func() error { return testkit.Err(store.Settle(t.Context(), weir.Settlement{TTL: -1})) },
		"ops":    func() error { return testkit.Err(store.Reserve(t.Context(), nil, weir.Reservation{}, op, op)) },
		"always": func() error { return testkit.Err(store.Reserve(t.Context(), nil, weir.Reservation{}, always)) },
		"ops  ":  func() error { return testkit.Err(store.Reserve(t.Context(), nil, weir.Reservation{}, look, final)) },
		"ops ":   func() error { return testkit.Err(store.Reserve(t.Context(), nil, weir.Reservation{}, look, look)) },
		"tags": func() error {
			return testkit.Err(store.Reserve(t.Context(), nil, weir.Reservation{Tags: make([]string, 2)}, op))
		},
	} {
		if err := ask(); err == nil {
			t.Errorf("%q was accepted", what)
		}
	}
	if d := peek(t, store, op); d.Remaining != 5 {
		t.Errorf("%d remain, want 5", d.Remaining)
	}
	if s := settleZero(t, store, 404); s.State != weir.HoldUnknown {
		t.Errorf("a hold that was never there: %+v", s)
	}
}
