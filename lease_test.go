package weir_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// A holder asks for units, spends some of them without the store, and reports these with its next message.
func ExampleLeaseAll() {
	limit := weir.MustCompile("fixed_window 100/1m")
	var account weir.Account
	say := func(now weir.Micros, m weir.LeaseOp) {
		m.Op = weir.Op{Key: "alice", Limit: limit}
		m.ID, m.Term = weir.LeaseID{1}, time.Second
		account.Expire(limit, now)
		a := weir.LeaseAll(nil, now, []*weir.Account{&account}, []weir.LeaseOp{m})[0]
		fmt.Println("granted", a.Granted, "charged", a.Charged, "remaining", a.Remaining, "drop", a.Drop)
	}
	say(0, weir.LeaseOp{Seq: 1, Want: 30})
	say(500_000, weir.LeaseOp{Seq: 2, Spent: 20, Keep: 30})
	say(2_000_000, weir.LeaseOp{Seq: 3, Spent: 25, Charged: 20, Keep: 30}) // which comes too late
	// Output:
	// granted 30 charged 0 remaining 70 drop false
	// granted 30 charged 20 remaining 70 drop false
	// granted 30 charged 30 remaining 70 drop true
}

// leased is the account of one key, with one microsecond for one unit of time.
type leased struct {
	*testing.T
	limit *weir.Compiled
	weir.Account
}

// say carries out a message. Its term is 10 unless it says otherwise.
func (k *leased) say(now weir.Micros, m weir.LeaseOp) weir.LeaseAnswer {
	m.Key, m.Limit = "k", k.limit
	if m.Term == 0 {
		m.Term = 10 * time.Microsecond
	}
	k.Expire(k.limit, now)
	return weir.LeaseAll(nil, now, []*weir.Account{&k.Account}, []weir.LeaseOp{m})[0]
}

func (k *leased) want(what string, a weir.LeaseAnswer, granted, charged int64, drop bool) {
	k.Helper()
	if a.Granted != granted || a.Charged != charged || a.Drop != drop {
		k.Errorf("%s: granted %d, charged %d, drop %t; want %d, %d, %t", what, a.Granted, a.Charged, a.Drop, granted, charged, drop)
	}
}

// wantFree checks how many units are free, and on lease.
func (k *leased) wantFree(now weir.Micros, free, out int64) {
	k.Helper()
	k.Expire(k.limit, now)
	op := weir.Op{Key: "k", Limit: k.limit}
	d := weir.PeekAll(nil, now, []weir.Pending{{Op: &op, Prev: k.State, Tail: k.Tail, Leased: k.Out}})[0]
	if d.Remaining != free || k.Out != out {
		k.Errorf("at %d: %d units are free and %d on lease, want %d and %d", now, d.Remaining, k.Out, free, out)
	}
}

func lease(id byte) weir.LeaseID { return weir.LeaseID{id} }

// Of a lease that the store has lost, what was spent since the last answer is charged, and the rest
// is dropped.
func TestLostLease(t *testing.T) {
	k := leased{T: t, limit: weir.MustCompile("fixed_window 100/1s")}
	m := weir.LeaseOp{ID: lease(1), Seq: 7, Spent: 30, Charged: 20, Keep: 50}
	k.want("unknown", k.say(1, m), 30, 30, false)
	k.wantFree(1, 90, 0)
	k.want("doubled", k.say(2, m), 30, 30, false)
	k.wantFree(2, 90, 0)
	k.want("what it spent meanwhile", k.say(3, weir.LeaseOp{ID: lease(1), Seq: 8, Spent: 35, Charged: 30, Keep: 30, Want: 10}), 45, 35, false)
	k.wantFree(3, 75, 10)
}

// A store that was restored knows a lease as it was before: it keeps what it knows of, and charges
// nothing of which the holder knows that it was charged.
func TestOlderLease(t *testing.T) {
	k := leased{T: t, limit: weir.MustCompile("fixed_window 100/1s")}
	k.say(1, weir.LeaseOp{ID: lease(1), Seq: 1, Want: 40})
	k.want("older", k.say(2, weir.LeaseOp{ID: lease(1), Seq: 9, Spent: 30, Charged: 20, Keep: 70}), 40, 30, false)
	k.wantFree(2, 80, 10)
}

// What was spent beyond the grant of a lease that has expired is charged, once, and its holder is told to
// drop it each time.
func TestExpiredLease(t *testing.T) {
	k := leased{T: t, limit: weir.MustCompile("fixed_window 100/1s")}
	k.say(1, weir.LeaseOp{ID: lease(1), Seq: 1, Want: 10})
	k.wantFree(11, 90, 0)
	late := weir.LeaseOp{ID: lease(1), Seq: 2, Spent: 13, Keep: 10, Want: 5}
	k.want("late", k.say(19, late), 13, 13, true)
	k.want("doubled", k.say(20, late), 13, 13, true)
	k.want("later", k.say(28, weir.LeaseOp{ID: lease(1), Seq: 3, Spent: 13, Keep: 13}), 13, 13, true)
	k.wantFree(37, 87, 0)
	if len(k.Leases) != 1 {
		t.Errorf("it was forgotten within a term of its last message")
	}
	k.wantFree(38, 87, 0)
	if len(k.Leases) != 0 {
		t.Errorf("it is remembered for more than a term: %+v", k.Leases)
	}
}

// The end of a lease is final, also for a clock that steps back.
func TestExpiredLeaseStaysExpired(t *testing.T) {
	k := leased{T: t, limit: weir.MustCompile("fixed_window 100/1s")}
	k.say(100, weir.LeaseOp{ID: lease(1), Seq: 1, Want: 10})
	k.wantFree(110, 90, 0)
	k.want("before its end", k.say(105, weir.LeaseOp{ID: lease(1), Seq: 2, Keep: 10, Want: 5}), 10, 10, true)
	k.wantFree(105, 90, 0)
}

// Leases that expire between two calls are charged as of their ends, in the order of these.
func TestLeasesExpireInOrder(t *testing.T) {
	k := leased{T: t, limit: weir.MustCompile("sliding_log 40/100us")}
	k.say(1, weir.LeaseOp{ID: lease(1), Seq: 1, Want: 10, Term: 29 * time.Microsecond})
	k.say(1, weir.LeaseOp{ID: lease(2), Seq: 1, Want: 5, Term: 19 * time.Microsecond})
	k.say(1, weir.LeaseOp{ID: lease(3), Seq: 1, Want: 1, Term: 24 * time.Microsecond})
	k.wantFree(90, 24, 0)
	k.wantFree(119, 24, 0)
	k.wantFree(120, 29, 0)
	k.wantFree(125, 30, 0)
	k.wantFree(130, 40, 0)
}

// Beyond MaxLeases the store takes what is asked for, and charges what is reported. There is room again as soon as
// one is forgotten.
func TestMaxLeases(t *testing.T) {
	k := leased{T: t, limit: weir.MustCompile("fixed_window 1000000/1s")}
	for i := range weir.MaxLeases {
		if a := k.say(1, weir.LeaseOp{ID: weir.LeaseID{byte(i), byte(i >> 8), 1}, Seq: 1, Want: 1}); a.Granted != 1 {
			t.Fatalf("lease %d: %+v", i, a)
		}
	}
	m := weir.LeaseOp{Op: weir.Op{Cost: 5}, ID: lease(1), Seq: 1, Spent: 2, Keep: 2, Want: 10}
	a := k.say(2, m)
	k.want("one more", a, 2, 2, false)
	if !a.Allowed || len(k.Leases) != weir.MaxLeases {
		t.Errorf("%+v, and %d leases", a, len(k.Leases))
	}
	k.wantFree(2, 1000000-7-weir.MaxLeases, weir.MaxLeases)
	k.want("after they were forgotten", k.say(21, weir.LeaseOp{ID: lease(1), Seq: 2, Spent: 2, Charged: 2, Want: 10}), 12, 2, false)
}

// A lowered limit grants nothing while more is on lease, and charges what is reported in full.
func TestLoweredLimitWithLeases(t *testing.T) {
	k := leased{T: t, limit: weir.MustCompile("fixed_window 100/1s")}
	k.say(1, weir.LeaseOp{ID: lease(1), Seq: 1, Want: 40})
	k.limit = weir.MustCompile("fixed_window 10/1s")
	k.wantFree(2, 0, 40)
	k.want("lowered", k.say(3, weir.LeaseOp{ID: lease(1), Seq: 2, Spent: 35, Keep: 40, Want: 10}), 40, 35, false)
	k.wantFree(3, 0, 5)
	k.limit = weir.MustCompile("fixed_window 100/1s")
	k.wantFree(4, 60, 5)
}

// A reset of the usage leaves what is on lease, which is charged when it is reported.
func TestResetLeavesLeases(t *testing.T) {
	k := leased{T: t, limit: weir.MustCompile("fixed_window 100/1s")}
	k.say(1, weir.LeaseOp{Op: weir.Op{Cost: 20}, ID: lease(1), Seq: 1, Want: 40})
	k.wantFree(2, 40, 40)
	k.Record = weir.Record{}
	k.wantFree(2, 60, 40)
	k.want("after it", k.say(3, weir.LeaseOp{ID: lease(1), Seq: 2, Spent: 10, Keep: 10}), 10, 10, false)
	k.wantFree(3, 90, 0)
}

// All ops of a request are taken or none, and nothing is granted to a denied one; but every message
// reports.
func TestDeniedRequestReports(t *testing.T) {
	limits := []*weir.Compiled{weir.MustCompile("fixed_window 100/1s"), weir.MustCompile("sliding_log 5/1s"), weir.MustCompile("leaky_bucket 10/1s shape")}
	accounts := []*weir.Account{{}, {}, {}}
	ops := make([]weir.LeaseOp, len(limits))
	for i, limit := range limits {
		ops[i] = weir.LeaseOp{Op: weir.Op{Key: "k", Limit: limit, Cost: 1}, ID: lease(byte(i + 1)), Seq: 1, Want: 2, Term: time.Second}
	}
	ops[2] = weir.LeaseOp{Op: ops[2].Op} // which cannot be leased
	before := []weir.LeaseAnswer{{Granted: 7}}
	answers := weir.LeaseAll(before, 0, accounts, ops)
	if answers[0].Granted != 7 || !answers[1].Allowed || answers[1].Granted != 2 || answers[1].Remaining != 97 || answers[2].Granted != 2 || answers[3].Granted != 0 || answers[3].Remaining != 9 {
		t.Errorf("allowed: %+v", answers)
	}
	ops[0].Seq, ops[0].Spent, ops[0].Keep = 2, 1, 2
	ops[1].Seq, ops[1].Spent, ops[1].Keep, ops[1].Cost = 2, 2, 2, 4
	answers = weir.LeaseAll(nil, 1, accounts, ops)
	if a := answers[0]; !a.Allowed || a.Granted != 2 || a.Charged != 1 || a.Remaining != 97 {
		t.Errorf("the one that fits: %+v", a)
	}
	if a := answers[1]; a.Allowed || a.Granted != 2 || a.Charged != 2 || a.Remaining != 2 {
		t.Errorf("the one that does not: %+v", a)
	}
	if accounts[0].Out != 1 || accounts[1].Out != 0 || answers[2].Remaining != 9 {
		t.Errorf("%+v, %+v, %+v", accounts[0], accounts[1], answers[2])
	}
}

// However much is reported, numbers stay exact, and what is on lease can be charged in the end.
func TestReportsAreExact(t *testing.T) {
	for limit, most := range map[string]int64{
		"fixed_window 10/1h": 1 << 52, "sliding_window 10/1h": 1 << 52, "sliding_buckets 10/1h": 1<<53 - 1 - 600,
		"sliding_log 10/1h": 1<<21 - 1, "sliding_log 1048576/1h": 1<<21 - 1,
		"token_bucket 10/1h": (1<<53 - 1) / 360_000_000, "leaky_bucket 1000000/1s": (1<<53 - 1) / 1,
	} {
		k := leased{T: t, limit: weir.MustCompile(limit)}
		now := weir.Micros(1)
		k.say(now, weir.LeaseOp{ID: lease(1), Seq: 1, Want: 5})
		for id := byte(2); id < 30; id++ {
			k.say(now, weir.LeaseOp{ID: lease(id), Seq: 1, Spent: weir.MaxUnits, Keep: weir.MaxUnits})
		}
		usage := func() int64 {
			switch k.limit.Algorithm() {
			case weir.SlidingLog:
				return k.State.B & (1<<21 - 1)
			case weir.TokenBucket, weir.LeakyBucket:
				return k.State.A / k.limit.Numbers().Unit
			}
			return k.State.A
		}
		if got := usage(); got > most-5 || got < most-6 {
			t.Errorf("%s: %d units are charged, want %d", limit, got, most-5)
		}
		full := usage()
		k.say(now, weir.LeaseOp{ID: lease(1), Seq: 2, Spent: 5, Keep: 5})
		if got := usage(); got != full+5 || k.Out != 0 {
			t.Errorf("%s: %d units are charged, and then %d; %d on lease", limit, full, got, k.Out)
		}
		k.wantFree(now, 0, 0)
	}
}

// What is charged in any case leaves what is on lease, too.
func TestAlwaysLeavesLeases(t *testing.T) {
	op := weir.Op{Key: "k", Limit: weir.MustCompile("fixed_window 10/1m"), Cost: 1000, Always: true}
	charge := []weir.Pending{{Op: &op, Leased: 4}}
	if d := weir.DecideAll(nil, 0, charge)[0]; d.Allowed || d.Excess != 1000-(110-4) || charge[0].Next.A != 106 {
		t.Errorf("%+v, %+v", d, charge[0].Next)
	}
}

func TestLeasable(t *testing.T) {
	for limit, want := range map[string]bool{
		"fixed_window 5/1m": true, "sliding_window 5/1m": true, "sliding_buckets 5/1m": true, "sliding_log 5/1m": true,
		"token_bucket 5/1m": true, "leaky_bucket 5/1m": true, "5/month": true, "leaky_bucket 5/1m shape": false, "fixed_window 5/1m count_denied": false,
	} {
		if got := weir.MustCompile(limit).Leasable(); got != want {
			t.Errorf("%s: %t", limit, got)
		}
	}
	for _, l := range []weir.Limit{weir.Concurrent(5, time.Minute), {N: 5, Period: time.Minute, Release: true}} {
		if c, err := l.Compile(); err != nil || c.Leasable() {
			t.Errorf("%+v can be leased, or %v", l, err)
		}
	}
}

func TestValidateLease(t *testing.T) {
	limit := weir.MustCompile("5/1m")
	valid := weir.LeaseOp{Op: weir.Op{Key: "k", Limit: limit}, ID: lease(1), Seq: 1, Term: time.Second}
	change := func(f func(*weir.LeaseOp)) []weir.LeaseOp {
		m := valid
		f(&m)
		return []weir.LeaseOp{m}
	}
	many := make([]weir.LeaseOp, weir.MaxOps+1)
	for i := range many {
		many[i] = valid
		many[i].Key = fmt.Sprint(i)
	}
	other := valid
	other.Limit = weir.MustCompile("5/1h")
	for _, c := range []struct {
		field, says string
		ops         []weir.LeaseOp
	}{
		{"", "", nil},
		{"", "", []weir.LeaseOp{valid, other}},
		{"", "", many[:weir.MaxOps]},
		{"", "", change(func(m *weir.LeaseOp) {
			m.Seq, m.Spent, m.Charged, m.Keep, m.Want = 1<<53-1, weir.MaxUnits, 3, 2, weir.MaxUnits
		})},
		{"", "", change(func(m *weir.LeaseOp) { m.Term = weir.MinLease })},
		{"", "", change(func(m *weir.LeaseOp) { m.Term = weir.MaxLease })},
		{"", "", change(func(m *weir.LeaseOp) {
			*m = weir.LeaseOp{Op: weir.Op{Key: "k", Limit: weir.MustCompile("leaky_bucket 5/1m shape"), Cost: 1}}
		})},
		{"key", "empty", change(func(m *weir.LeaseOp) { m.Key = "" })},
		{"limit", "required", change(func(m *weir.LeaseOp) { m.Limit = nil })},
		{"cost", "negative", change(func(m *weir.LeaseOp) { m.Cost = -1 })},
		{"cost", "at least 1", change(func(m *weir.LeaseOp) { m.ID = weir.LeaseID{} })},
		{"op", "use Take", change(func(m *weir.LeaseOp) { m.Always = true })},
		{"op", "use Take", change(func(m *weir.LeaseOp) { m.Look = true })},
		{"op", "use Take", change(func(m *weir.LeaseOp) { m.Final = true })},
		{"op", "use Take", change(func(m *weir.LeaseOp) { m.Receipt = 1 })},
		{"limit", "shapes", change(func(m *weir.LeaseOp) { m.Limit = weir.MustCompile("leaky_bucket 5/1m shape") })},
		{"term", "20ms to 1h0m0s", change(func(m *weir.LeaseOp) { m.Term = weir.MinLease - 1 })},
		{"term", "20ms to 1h0m0s", change(func(m *weir.LeaseOp) { m.Term = weir.MaxLease + 1 })},
		{"lease", "seq 0", change(func(m *weir.LeaseOp) { m.Seq = 0 })},
		{"lease", "no totals", change(func(m *weir.LeaseOp) { m.Seq = 1 << 53 })},
		{"lease", "charged -1", change(func(m *weir.LeaseOp) { m.Charged = -1 })},
		{"lease", "spent 1, charged 2", change(func(m *weir.LeaseOp) { m.Spent, m.Charged = 1, 2 })},
		{"lease", "keep -1", change(func(m *weir.LeaseOp) { m.Keep = -1 })},
		{"lease", "want -1", change(func(m *weir.LeaseOp) { m.Want = -1 })},
		{"lease", "no totals", change(func(m *weir.LeaseOp) { m.Spent = weir.MaxUnits + 1 })},
		{"lease", "no totals", change(func(m *weir.LeaseOp) { m.Keep = weir.MaxUnits + 1 })},
		{"lease", "no totals", change(func(m *weir.LeaseOp) { m.Want = math.MaxInt64 })},
		{"ops", `share the key "k"`, []weir.LeaseOp{valid, other, valid}},
		{"ops", "at most 64", many},
	} {
		err := weir.ValidateLease(c.ops)
		var invalid *weir.InvalidError
		if c.field == "" && err != nil || c.field != "" && (!errors.As(err, &invalid) || invalid.Field != c.field || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: %v, want %s: %s", c.ops, err, c.field, c.says)
		}
	}
}
