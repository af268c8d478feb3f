package redis

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
	"github.com/weirhq/weir/internal/traffic/scenario"
	"github.com/weirhq/weir/store/memory"
)

// Whatever travels together is decided as if each request had come by itself, in order,
// although singles are put in order by key.
func TestBatchIsASequence(t *testing.T) {
	for way, use := range ways {
		t.Run(way, func(t *testing.T) { testBatches(t, 600, use) })
	}
}

// The same with logs that soon have pages.
func TestBatchOfPagesIsASequence(t *testing.T) {
	useSmallPages(t)
	testBatches(t, 600, ways["functions"])
}

func testBatches(t *testing.T, steps int, use func(*Store) *Store) {
	now := weir.Micros(1_790_000_000_000_000)
	clock := func() weir.Micros { return now }
	s := use(storeOn(t, connect(t), Options{Clock: clock}))
	reference := memory.New(memory.Options{Clock: clock})
	groups := [][]*weir.Compiled{
		{weir.MustCompile("token_bucket 9/1m"), weir.MustCompile("token_bucket 5/1h"), weir.MustCompile("leaky_bucket 7/1m burst 5 shape")},
		{weir.MustCompile("fixed_window 9/1m"), weir.MustCompile("fixed_window 5/1s count_denied")},
		{weir.MustCompile("sliding_window 9/1m"), weir.MustCompile("sliding_window 30/1h")},
		{weir.MustCompile("token_bucket 9/1m"), weir.MustCompile("fixed_window 9/1m")},
		{weir.MustCompile("token_bucket 9/1m"), weir.MustCompile("token_bucket 4/1m")}, // of one key
		{weir.MustCompile("sliding_log 9/1m"), weir.MustCompile("token_bucket 9/1m")},
		{weir.MustCompile("sliding_log 30/1m"), weir.MustCompile("sliding_log 9/1h count_denied")},
		{weir.MustCompile("in_flight 9/1m"), weir.MustCompile("in_flight 40/1h"), weir.MustCompile("sliding_log 40/10m")},
		{weir.MustCompile("sliding_buckets 9/1m"), weir.MustCompile("sliding_buckets 30/1h buckets 7"), weir.MustCompile("sliding_buckets 9/10m count_denied")},
	}
	random := rand.New(rand.NewPCG(1, 2))
	forms, backs := map[bool]int{}, map[bool]int{}
	var taken []weir.Op
	for step := range steps {
		limits := groups[random.IntN(len(groups))]
		var batch []*check
		var ops []weir.Op
		var want []weir.Decision
		debts := random.IntN(20) == 0 // soon as large as may be
		for range 1 + random.IntN(20) {
			op := weir.Op{Key: fmt.Sprintf("%d:%d", len(limits), random.IntN([]int{1, 5}[step%2])), Limit: limits[random.IntN(len(limits))], Cost: 1}
			if random.IntN(4) == 0 {
				op.Cost, op.MaxDelay = random.Int64N(4)+1, time.Duration(random.Int64N(60))*time.Second
			}
			if random.IntN(3) == 0 {
				op.Leave = 2 * random.Int64N(3)
			}
			if op.Always = debts || random.IntN(20) == 0; debts {
				op.Cost = 300
			}
			verb := take
			if len(taken) > 0 && random.IntN(2) == 0 {
				if back := taken[random.IntN(len(taken))]; slices.Contains(limits, back.Limit) {
					op, verb = back, refund
				}
			}
			c := newCheck(verb, 0)
			c.asks = verb != refund || random.IntN(2) == 0
			c.addOp(op, s.keyOf(&op))
			batch, ops = append(batch, c), append(ops, op)
			if verb == refund {
				testkit.OK(t, reference.Refund(t.Context(), op))
				op.Receipt = 0
				want = append(want, testkit.Must(reference.Peek(t.Context(), nil, op))(t)[0])
				continue
			}
			want = append(want, testkit.Must(reference.Take(t.Context(), nil, op))(t)[0])
		}
		r := newRequest(batch, 0)
		forms[r.chains != nil]++
		if err := s.call(r); err != nil {
			t.Fatal(err)
		}
		for i, c := range batch {
			op := ops[i]
			if c.err != nil || c.decisions[0] != want[i] && c.asks {
				t.Fatalf("step %d, request %d of %d, %d of %v, receipt %d: %+v %v, want %+v", step, i, len(batch), c.verb, op.Limit.Limit(), op.Receipt, c.decisions[0], c.err, want[i])
			}
			if c.verb == refund {
				backs[r.chains != nil]++
			} else if op.Receipt = c.decisions[0].Receipt; op.Receipt != 0 {
				op.Always = false
				if random.IntN(9) == 0 {
					op.Receipt = weir.Latest
				}
				taken = append(taken[max(0, len(taken)-30):], op)
			}
		}
		now += weir.Micros(random.Int64N(20_000_000))
	}
	if forms[true] < 100 || forms[false] < 100 || backs[true] < 100 || backs[false] < 10 {
		t.Errorf("not both forms were tried: %v, with refunds: %v", forms, backs)
	}
}

// The same with requests of several ops: of different algorithms and keys or the same, of which
// some are only looked at, some count denials, and some are charged in any case.
func TestBatchOfSeveralIsASequence(t *testing.T) {
	now := weir.Micros(1_790_000_000_000_000)
	clock := func() weir.Micros { return now }
	s := storeOn(t, connect(t), Options{Clock: clock})
	reference := memory.New(memory.Options{Clock: clock})
	var limits []*weir.Compiled
	for _, text := range []string{
		"token_bucket 60/1m", "token_bucket 50/1h", "leaky_bucket 70/1m burst 50 shape", "fixed_window 60/1m", "fixed_window 30/1s count_denied",
		"sliding_window 60/1m", "sliding_window 40/1m count_denied", "fixed_window 90/2m count_denied", "50/day zone Europe/Berlin", "sliding_log 60/1m",
	} {
		limits = append(limits, weir.MustCompile(text))
	}
	random := rand.New(rand.NewPCG(3, 4))
	const windows = needBucket | needFixedWindow | needSlidingWindow
	joint, denied := map[needs]int{}, 0
	for step := range 600 {
		some := limits[:1+random.IntN(len(limits))]
		same, alike := random.IntN(4) == 0, random.IntN(3) == 0
		var batch []*check
		var want [][]weir.Decision
		var before []weir.Op
		for request := range 1 + random.IntN(15) {
			var ops []weir.Op
			for n := range 1 + random.IntN(4) {
				op := weir.Op{Key: fmt.Sprint("k", random.IntN(2)), Limit: some[random.IntN(len(some))], Cost: 1 + random.Int64N(3)*random.Int64N(8), Leave: random.Int64N(3)}
				if !same {
					op.Key = fmt.Sprint(n, op.Key)
				}
				op.Look = n > 0 && random.IntN(5) == 0
				if random.IntN(5) == 0 {
					op.MaxDelay = time.Duration(random.Int64N(60)) * time.Second
				}
				ops = append(ops, op)
			}
			if random.IntN(50) == 0 {
				for i := range ops {
					ops[i].Always, ops[i].Look = true, false
				}
			}
			if alike && request > 0 && random.IntN(8) > 0 {
				ops = slices.Clone(before)
				for i := range ops {
					ops[i].Key = fmt.Sprint(i, "alike", step%2, request)
				}
			}
			before = ops
			batch = append(batch, s.checkOf(verbFor(take, ops), ops))
			want = append(want, testkit.Must(reference.Take(t.Context(), nil, ops...))(t))
		}
		r := newRequest(batch, 0)
		testkit.OK(t, s.call(r))
		joint[r.needs]++
		for i, c := range batch {
			if !weir.Allowed(want[i]) && len(c.ops) > 1 {
				denied++
			}
			if c.err != nil || !slices.Equal(c.decisions, want[i]) {
				t.Fatalf("step %d, request %d of %d: %+v %v, want %+v", step, i, len(batch), c.decisions, c.err, want[i])
			}
		}
		now += weir.Micros(random.Int64N(20_000_000))
	}
	if joint[needBucket] < 50 || joint[windows] < 50 || joint[windows|needLog] < 10 || denied < 500 {
		t.Errorf("not enough was tried: %v, %d denied", joint, denied)
	}
}

// The same with holds among them: on the same key and on others, settled twice in a call, too
// late, and with too many open ones for one write.
func TestBatchOfHoldsIsASequence(t *testing.T) {
	model := scenario.NewModel()
	model.Now = 1_790_000_000_000_000
	s := storeOn(t, connect(t), Options{Clock: func() weir.Micros { return model.Now }})
	random := rand.New(rand.NewPCG(5, 6))
	forms := map[bool]int{}
	for kind, text := range []string{"token_bucket 900/1m", "leaky_bucket 90/1m shape", "fixed_window 900/1m", "sliding_window 900/1m count_denied", "sliding_log 900/1m", "sliding_log 90/1m count_denied",
		"sliding_buckets 900/1m", "sliding_buckets 90/1m buckets 7 count_denied", "sliding_buckets 900/1h buckets 129", "token_bucket 900/1m release"} {
		limit := weir.MustCompile(text)
		open := map[weir.HoldID]*directory{}
		var ids []weir.HoldID
		for step := range 60 {
			var batch []*check
			var want []any
			known := len(ids)
			for n := range 1 + random.IntN(30) {
				// Some keys have many holds, and others one at most.
				op := weir.Op{Key: fmt.Sprint(text, random.IntN([]int{3, 60}[step%2])), Limit: limit, Cost: 1 + random.Int64N(9), Leave: random.Int64N(3) / 2}
				if random.IntN(5) == 0 {
					op.MaxDelay = time.Duration(random.Int64N(60)) * time.Second
				}
				verb := []verb{take, reserve, reserve, settle, settle}[random.IntN(5)]
				switch {
				case verb == settle && known > 0:
					settlement := weir.Settlement{ID: ids[random.IntN(known)]}
					if random.IntN(2) == 0 { // one of the last, which is probably open
						settlement.ID = ids[max(0, known-1-random.IntN(20))]
					}
					used := random.Int64N(12)
					settlement.Used = func(string, int64) int64 { return used }
					d := open[settlement.ID]
					c := s.checkOf(settle, d.ops)
					s.toSettle(c, &settlement, d)
					c.settles(0, &settlement, d, 0)
					batch = append(batch, c)
					want = append(want, testkit.Must(model.Settle(t.Context(), settlement))(t))
				case verb == reserve:
					r := weir.Reservation{ID: weir.HoldID{byte(step), byte(n), byte(kind)}, TTL: time.Duration(1+random.IntN(90)) * time.Second}
					c := s.checkOf(reserve, []weir.Op{op})
					d := describe(&r, []weir.Op{op})
					d.expires = model.Now.Add(r.TTL)
					h := s.holds(c, r.ID)
					h.life, h.content = r.TTL, string(s.texts.append(make([]byte, outcomeSize), d))
					batch = append(batch, c)
					decisions := testkit.Must(model.Reserve(t.Context(), nil, r, op))(t)
					if want = append(want, decisions[0]); decisions[0].Allowed {
						open[r.ID] = d
						ids = append(ids, r.ID)
					}
				default:
					batch = append(batch, s.checkOf(verbFor(take, []weir.Op{op}), []weir.Op{op}))
					want = append(want, testkit.Must(model.Take(t.Context(), nil, op))(t)[0])
				}
			}
			r := newRequest(batch, 0)
			forms[r.chains != nil]++
			testkit.OK(t, s.call(r))
			for i, c := range batch {
				var got any
				if c.verb == settle {
					testkit.OK(t, c.err)
					got = open[weir.HoldID([]byte(c.hold.id))].settled(c.hold.outcomes)
				} else {
					got = c.decisions[0]
				}
				if c.err != nil || !reflect.DeepEqual(got, want[i]) {
					t.Fatalf("%s, step %d, request %d of %d: %+v %v, want %+v", text, step, i, len(batch), got, c.err, want[i])
				}
			}
			model.Now += weir.Micros(random.Int64N(9_000_000))
		}
	}
	if forms[true] < 100 || forms[false] < 100 {
		t.Errorf("not both forms were tried: %v", forms)
	}
}

// A call may have few values or many, which are sent otherwise.
func TestValuesOfACall(t *testing.T) {
	s := storeOn(t, connect(t), Options{Timeout: 10 * time.Second, Clock: func() weir.Micros { return 1_790_000_000_000_000 }})
	for _, limits := range [][]*weir.Compiled{
		{weir.MustCompile("token_bucket 100000/1d")},
		{weir.MustCompile("token_bucket 100000/1d"), weir.MustCompile("fixed_window 100000/1d")},
	} {
		for _, n := range []int{1, 100, 400} {
			var batch []*check
			for i := range n {
				op := weir.Op{Key: fmt.Sprint(len(limits), n), Limit: limits[i%len(limits)], Cost: 2}
				batch = append(batch, s.checkOf(take, []weir.Op{op}))
			}
			r := newRequest(batch, 0)
			if many := r.encode(0)[0] == 0xdc; many != (n == 400) {
				t.Errorf("%d requests are an array: %v", n, many)
			}
			testkit.OK(t, s.call(r))
			for i, c := range batch {
				if want := 100_000 - 2*int64(1+i/len(limits)); c.err != nil || c.decisions[0].Remaining != want {
					t.Fatalf("request %d of %d: %+v %v, want %d remaining", i, n, c.decisions, c.err, want)
				}
			}
		}
	}
}

// A reservation that arrives after its end is denied, also if both come in one call.
func TestEndBeforeReserveInOneCall(t *testing.T) {
	s := storeOn(t, connect(t), Options{})
	for n, text := range []string{"fixed_window 10/1h", "token_bucket 10/1h", "sliding_log 10/1h"} {
		op := weir.Op{Key: "late", Limit: weir.MustCompile(text), Cost: 3}
		id := weir.HoldID{byte(n), 'l'}
		settlement := weir.Settlement{ID: id, Used: func(string, int64) int64 { return 0 }}
		d := &directory{ops: []weir.Op{op}, late: true}
		end, begin := s.checkOf(settle, d.ops), s.checkOf(reserve, d.ops)
		s.toSettle(end, &settlement, d)
		end.settles(0, &settlement, d, 0)
		h := s.holds(begin, id)
		h.life, h.content = time.Minute, string(s.texts.append(make([]byte, outcomeSize), d))
		testkit.OK(t, s.call(newRequest([]*check{end, begin}, 0)))
		if o := end.hold.outcomes[0]; o.state != holdSettled || begin.decisions[0].Allowed {
			t.Errorf("%s: %+v, %+v", text, o, begin.decisions[0])
		}
	}
}
