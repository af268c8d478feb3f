package redis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/traffic/scenario"
)

// remembered reads what Redis remembers of an op's key, in words.
func remembered(t *testing.T, client rueidis.Client, s *Store, op weir.Op) string {
	t.Helper()
	if arithmeticOf(op.Limit) == weir.SlidingLog {
		return readLog(t, client, s.keyOf(&op), op.Limit).String()
	}
	raw, err := client.Do(t.Context(), client.B().Get().Key(s.keyOf(&op)).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return inWords(op.Limit, weir.Record{})
	}
	if err != nil {
		t.Fatal(err)
	}
	u := unpacker(raw)
	word := func() int64 {
		n, err := u.bigEndian(7)
		if err != nil {
			t.Fatal(err)
		}
		return int64(n)
	}
	r := weir.Record{State: weir.State{Fresh: weir.Micros(word()), A: word(), B: word()}}
	if expires := word(); expires < int64(r.State.Fresh) {
		t.Fatalf("it expires at %d, and is fully reset at %d", expires, r.State.Fresh)
	}
	for len(u) > 0 {
		r.Tail = append(r.Tail, word())
	}
	return inWords(op.Limit, r)
}

// inWords is a state with what counts in its tail, wherever the ring keeps it: the
// entries of a log, the older sub-windows that count at the last charge.
func inWords(limit *weir.Compiled, r weir.Record) string {
	n := limit.Numbers()
	switch arithmeticOf(limit) {
	case weir.SlidingLog:
		return arithmeticLog(limit, r).String()
	case weir.SlidingBuckets:
		var counts []int64
		to := (int64(r.State.Fresh)+1-n.Period)/n.Width - 1
		from := max(0, to*n.Width-n.Period+1) / n.Width
		for i := from; i < to && len(r.Tail) > 0; i++ {
			counts = append(counts, r.Tail[i%int64(len(r.Tail))])
		}
		return fmt.Sprint(r.State, counts)
	}
	return fmt.Sprint(r.State)
}

// After every step of a random history, another one in every run, Redis answers what the
// arithmetic answers, and remembers what it remembers.
func TestStateIsTheArithmetics(t *testing.T) {
	client := connect(t)
	for _, text := range []string{
		"fixed_window 5/1m", "fixed_window 5/1m count_denied",
		"5/month", "5/month zone Europe/Berlin starts 31 count_denied", "5/day zone Europe/Berlin starts 02:30", "5/year starts 02-29",
		"sliding_window 5/1m", "sliding_window 1000003/10d count_denied", "sliding_window 900000000000/3650d",
		"sliding_buckets 5/1m", "sliding_buckets 9/1m buckets 7 count_denied", "sliding_buckets 9/15us buckets 5",
		"sliding_log 5/1m", "sliding_log 30/1m", "sliding_log 5/1m count_denied", "sliding_log 9/3650d",
		"in_flight 5/1m", "in_flight 30/1m",
		"token_bucket 5/1m", "token_bucket 7/1m burst 11", "token_bucket 1000003/1d burst 104249",
		"leaky_bucket 5/1m", "leaky_bucket 7/1m burst 9 shape",
	} {
		t.Run(text, func(t *testing.T) {
			if err := client.Do(t.Context(), client.B().Flushall().Build()).Error(); err != nil {
				t.Fatal(err)
			}
			limit := weir.MustCompile(text)
			compareHistories(t, client, []*weir.Compiled{limit}, 300, 3*limit.Numbers().Period)
		})
	}
}

// compareHistories draws each op's limit from those, which share their states. The
// clock leaps by up to so much, and steps back by up to a third of that.
func compareHistories(t *testing.T, client rueidis.Client, limits []*weir.Compiled, steps int, leap int64) {
	t.Helper()
	limit := limits[0]
	var clock fake
	store, model := storeOn(t, client, Options{Clock: clock.Now}), scenario.NewModel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	period := limit.Numbers().Period
	now := weir.MicrosOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var taken []weir.Op
	for step := range steps {
		switch random.IntN(8) {
		case 0, 1:
		case 2:
			now += 1
		case 3:
			now -= weir.Micros(random.Int64N(leap / 3))
		case 4:
			now += weir.Micros(random.Int64N(leap))
		default:
			now += weir.Micros(random.Int64N(1 + period/limit.Capacity()))
		}
		if now = max(now, 0); now > 5_000_000_000_000_000 {
			now /= 2 // numbers end at 2^53, which is the year 2255
		}
		clock.Set(now)
		model.Now = now
		ops := make([]weir.Op, 1+random.IntN(3))
		for i := range ops {
			ops[i] = weir.Op{Key: fmt.Sprint("k", random.IntN(2)), Limit: limits[random.IntN(len(limits))], Cost: 1}
			if random.IntN(3) == 0 {
				ops[i].Cost = 1 + random.Int64N(limit.Capacity()+1)
			}
		}
		got, err := store.Take(t.Context(), nil, ops...)
		if err != nil {
			t.Fatal(err)
		}
		want, err := model.Take(t.Context(), nil, ops...)
		if err != nil {
			t.Fatal(err)
		}
		for i, op := range ops {
			if got[i] != want[i] {
				t.Fatalf("seed %d, step %d at %d, cost %d:\n got %+v\nwant %+v", seed, step, now, op.Cost, got[i], want[i])
			}
			ops[i].Receipt = got[i].Receipt
		}
		taken = append(taken[max(0, len(taken)-int(limit.Capacity())):], ops...)
		if random.IntN(3) == 0 {
			back := taken[random.IntN(len(taken))]
			if random.IntN(8) == 0 {
				back.Receipt = weir.Latest
			}
			if err := store.Refund(t.Context(), back); err != nil {
				t.Fatal(err)
			}
			if err := model.Refund(t.Context(), back); err != nil {
				t.Fatal(err)
			}
			ops = append(ops, back)
		}
		for i, op := range ops {
			if slices.ContainsFunc(ops[:i], func(o weir.Op) bool { return o.Key == op.Key }) {
				continue // the limits share their states
			}
			if r, m := remembered(t, client, store, op), inWords(limit, model.Record(op.Key, limit)); r != m {
				t.Fatalf("seed %d, step %d at %d:\n Redis has %s\n the arithmetic %s", seed, step, now, r, m)
			}
		}
	}
}
