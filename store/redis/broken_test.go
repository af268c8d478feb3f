package redis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit"
)

// breaking has what the library asks Redis for fail when a number that a test has set is down to 0.
var breaking = strings.NewReplacer("    call = redis.call\n  end\n", `  local function count()
    if redis.call('DECR', 'asks') == 0 then error('broken by a test') end
  end
  try = function(...)
    count()
    return redis.pcall(...)
  end
  call = function(...)
    count()
    return redis.call(...)
  end
  end
`)

// interrupted asks Redis for something before the last of what is defined when it is needed, so that a call can
// end there.
var interrupted = func() *strings.Replacer {
	var pairs []string
	for _, last := range []string{"self.letGo(", "self.refund(", "LOG.refund(", "SUB_WINDOWS.refund(", "lists.write(", "reserved.answer(", "decisions.decide("} {
		pairs = append(pairs, "  function "+last, "  call('PING')\n  function "+last)
	}
	return strings.NewReplacer(pairs...)
}()

// history is calls of all kinds, one after the other, with seconds between them.
type history struct {
	store  *Store
	now    weir.Micros
	limits map[string]*weir.Compiled
	holds  map[byte]*directory // that were reserved
	many   int64
	slow   bool // never by the quick functions
}

func (h *history) ops(key, limits string, cost int64) (ops []weir.Op) {
	for text := range strings.SplitSeq(limits, ", ") {
		if h.limits[text] == nil {
			h.limits[text] = weir.MustCompile(text)
		}
		ops = append(ops, weir.Op{Key: key, Limit: h.limits[text], Cost: cost})
	}
	return ops
}

// do makes checks of a verb for two keys, of which the second asks twice.
func (h *history) do(verb verb, limits string, cost int64) (batch []*check) {
	for _, key := range []string{"a", "b", "b"} {
		batch = append(batch, h.store.checkOf(verb, h.ops(key, limits, cost)))
	}
	return batch
}

func (h *history) reserve(limits string, cost int64, ids ...byte) (batch []*check) {
	for _, id := range ids {
		ops := h.ops(fmt.Sprint("k", id%2), limits, cost)
		r := weir.Reservation{ID: weir.HoldID{id}, TTL: time.Minute}
		c, d := h.store.checkOf(reserve, ops), describe(&r, ops)
		d.expires = h.now.Add(r.TTL)
		call := h.store.holds(c, r.ID)
		call.life, call.content = r.TTL, string(h.store.texts.append(make([]byte, outcomeSize*len(ops)), d))
		h.holds[id] = d
		batch = append(batch, c)
	}
	return batch
}

func (h *history) settle(verb verb, used int64, ids ...byte) (batch []*check) {
	for _, id := range ids {
		d, s := h.holds[id], weir.Settlement{ID: weir.HoldID{id}, TTL: time.Minute}
		if d == nil {
			continue
		}
		if verb == settle {
			s.Used = func(string, int64) int64 { return used }
		}
		c := h.store.checkOf(verb, d.ops)
		h.store.toSettle(c, &s, d)
		for i := range d.ops {
			c.settles(i, &s, d, i)
		}
		batch = append(batch, c)
	}
	return batch
}

// lease makes messages of two holders, for keys that may have leases.
func (h *history) lease(limits string, seq, spent int64) (batch []*check) {
	if h.many < hasMany {
		return nil
	}
	for holder := range byte(2) {
		c := h.store.checkOf(lease, h.ops("b", limits, 1))
		for range c.ops {
			c.leases = append(c.leases, leaseCall{begins: true, LeaseOp: weir.LeaseOp{
				ID: weir.LeaseID{holder + 1}, Seq: seq, Spent: spent, Keep: spent + 2, Want: 5, Term: 8 * time.Second,
			}})
		}
		batch = append(batch, c)
	}
	return batch
}

// calls are the history.
var calls = func() (all []func(*history) []*check) {
	add := func(call func(*history) []*check) { all = append(all, call) }
	for _, limits := range []string{
		"token_bucket 5/1m", "leaky_bucket 5/1m shape", "fixed_window 5/1m", "sliding_window 5/10s", "sliding_buckets 5/10s buckets 5", "sliding_buckets 900/1h buckets 300",
		"token_bucket 9/1m, fixed_window 4/1m, sliding_window 9/1m", "token_bucket 30/1m, sliding_log 30/1m, sliding_buckets 30/1m",
	} {
		add(func(h *history) []*check { return h.do(take, limits, 2) })
		add(func(h *history) []*check { return h.do(take, limits, 1) })
		add(func(h *history) []*check { return h.do(refund, limits, 1) })
	}
	for range 9 { // which is more than a page
		add(func(h *history) []*check { return h.do(take, "sliding_log 30/1m", 2) })
	}
	add(func(h *history) []*check { return h.do(refund, "sliding_log 30/1m", 3) })
	add(func(h *history) []*check { return h.do(peek, "sliding_log 30/1m, token_bucket 9/1m", 3) })
	for i, limits := range []string{"token_bucket 90/1m", "fixed_window 90/1m", "sliding_window 90/1m", "sliding_log 90/1m", "sliding_buckets 90/1m", "sliding_buckets 90/1m, token_bucket 80/1m", "token_bucket 90/1h release"} {
		id := byte(10 * i)
		add(func(h *history) []*check { return h.reserve(limits, 5, id) })
		add(func(h *history) []*check { return h.reserve(limits, 5, id+1, id+2, id+3) })
		add(func(h *history) []*check { return h.settle(settle, 3, id) })
		add(func(h *history) []*check { return h.settle(extend, 0, id+2) })
		add(func(h *history) []*check { return h.settle(settle, 9, id+1, id+2) })
		add(func(h *history) []*check { return h.settle(settle, 9, id) }) // once more
	}
	for _, limits := range []string{
		"token_bucket 90/1m, fixed_window 90/1m", "token_bucket 90/1m", "fixed_window 90/1m", "sliding_window 90/1m", "sliding_log 90/1m", "sliding_buckets 90/1m",
		"sliding_log 90/1m, sliding_buckets 90/1m",
	} {
		for seq := range int64(2) {
			add(func(h *history) []*check { return h.lease(limits, 1+seq, seq) })
			add(func(h *history) []*check { return h.do(take, limits, 1) })
		}
		add(func(h *history) []*check { return h.do(take, limits, 1) }) // in time for some to expire
		add(func(h *history) []*check { return h.lease(limits, 4, 9) })
	}
	add(func(h *history) []*check { return h.do(reset, "token_bucket 5/1m, sliding_log 30/1m", 1) })
	return all
}()

// write empties Redis, and has some calls made. It returns what they were told, and what is in Redis then.
func (h *history) write(t *testing.T, client rueidis.Client, some []func(*history) []*check) string {
	t.Helper()
	run(t, client, "FLUSHALL")
	h.now, h.holds = 1_790_000_000_000_000, map[byte]*directory{}
	var b strings.Builder
	for i, call := range some {
		batch := call(h)
		if len(batch) > 0 {
			r := newRequest(batch, h.many)
			if h.slow {
				r = &request{batch: batch, entry: anyHolds}
				r.listOps()
			}
			testkit.OK(t, h.store.call(r))
		}
		for _, c := range batch {
			fmt.Fprintln(&b, i, c.decisions, c.hold.outcomes, c.leases, c.err)
		}
		h.now += 3_000_000
	}
	keys := testkit.Must(client.Do(t.Context(), client.B().Keys().Pattern("weir:*").Build()).AsStrSlice())(t)
	slices.Sort(keys)
	for _, key := range keys {
		fmt.Fprintf(&b, "%q %q\n", key, run(t, client, "DUMP", key))
	}
	return b.String()
}

// A call that fails, wherever it does, leaves nothing behind in the library: the calls after it are as those
// of a library in which none has failed.
func TestNothingSurvivesABrokenCall(t *testing.T) {
	testBrokenCalls(t, 0, func(text string) string { return text })
}

func TestNothingSurvivesABrokenCallWithManyHolds(t *testing.T) {
	testBrokenCalls(t, hasMany+mayHaveMany, fewAreMany.Replace)
}

func TestNothingSurvivesABrokenCallWithLeases(t *testing.T) {
	testBrokenCalls(t, isMoved+mayHaveMany, fewAreMany.Replace)
}

func testBrokenCalls(t *testing.T, many int64, change func(string) string) {
	client := connect(t)
	open := func(comment string) *history {
		useFiles(t, func(text string) string { return breaking.Replace(smallPages.Replace(change(text))) + comment })
		h := &history{limits: map[string]*weir.Compiled{}, many: many}
		h.store = storeOn(t, client, Options{Clock: func() weir.Micros { return h.now }})
		return h
	}
	broken, fresh := open("-- broken\n"), open("-- fresh\n")
	entries := map[entry]int{}
	for i, call := range calls {
		from, to := max(0, i-4), min(len(calls), i+3)
		want := fresh.write(t, client, calls[from:to])
		for n := 1; ; n++ {
			broken.write(t, client, calls[from:i])
			run(t, client, "SET", "asks", fmt.Sprint(n))
			batch := call(broken)
			if len(batch) == 0 {
				break
			}
			r := newRequest(batch, many)
			err := broken.store.call(r)
			if err == nil {
				break
			}
			if !strings.Contains(err.Error(), "broken by a test") {
				t.Fatal(err)
			}
			entries[r.entry]++
			if got := broken.write(t, client, calls[from:to]); got != want {
				t.Fatalf("after call %d failed at the %d. command:\n%s\nwant\n%s", i, n, got, want)
			}
		}
	}
	for e := anyRequests; e < nothing; e++ {
		if want := e == anyHolds || many == 0 && e < bucketMoved || many >= isMoved && e >= bucketMoved; want && entries[e] < 3 {
			t.Errorf("%d calls of entry %d were broken", entries[e], e)
		}
	}
}

// What the quick function of holds answers and leaves in Redis is what the general one does, where the open holds
// of a key are apart from its state.
func TestHoldsApartAreWrittenAlike(t *testing.T) {
	client := connect(t)
	for _, limit := range []string{"sliding_log 60/20s", "sliding_log 30/1m count_denied", "sliding_buckets 60/20s buckets 9", "sliding_buckets 30/1m count_denied"} {
		random := rand.New(rand.NewPCG(7, 8))
		var some []func(*history) []*check
		for next := byte(0); next < 200; {
			used, which, cost := random.Int64N(9), byte(random.IntN(int(next)+1)), 1+random.Int64N(8)
			switch random.IntN(9) {
			case 0:
				some = append(some, func(h *history) []*check { return []*check{h.store.checkOf(take, h.ops("k1", limit, cost))} })
			case 1:
				some = append(some, func(h *history) []*check { return h.settle(extend, 0, which) })
			case 2:
				some = append(some, func(h *history) []*check { return h.reserve(limit, cost, which) }) // perhaps once more
			case 3, 4, 5:
				first := next
				next += 3
				some = append(some, func(h *history) []*check { return h.reserve(limit, cost, first, first+1, first+2) })
			default:
				some = append(some, func(h *history) []*check {
					return append(h.settle(settle, used, which, next-1), h.store.checkOf(take, h.ops("k0", limit, 1)))
				})
			}
		}
		var texts []string
		for _, slow := range []bool{false, true} {
			h := &history{limits: map[string]*weir.Compiled{}, slow: slow}
			h.store = storeOn(t, client, Options{Clock: func() weir.Micros { return h.now }})
			texts = append(texts, h.write(t, client, some))
		}
		if texts[0] != texts[1] {
			t.Errorf("%s: %s\nwant\n%s", limit, texts[0], texts[1])
		}
	}
}

// A call that ends while it defines what is seldom needed leaves that to the next one.
func TestNothingStaysHalfDefined(t *testing.T) {
	client := connect(t)
	useFiles(t, func(text string) string { return breaking.Replace(interrupted.Replace(text)) })
	s := storeOn(t, client, Options{})
	for _, limit := range []string{"token_bucket 90/1m", "fixed_window 90/1m", "sliding_window 90/1m", "sliding_log 90/1m", "sliding_buckets 90/1m"} {
		op := weir.Op{Key: limit, Limit: weir.MustCompile(limit), Cost: 2}
		next := byte(0)
		hold := func() error { // two at once, which need a list, and of each something is given back
			for range 2 {
				next++
				if _, err := s.Reserve(t.Context(), nil, weir.Reservation{ID: weir.HoldID{next}}, op); err != nil {
					return err
				}
			}
			for _, id := range []byte{next - 1, next} {
				if _, err := s.Settle(t.Context(), weir.Settlement{ID: weir.HoldID{id}, Used: func(string, int64) int64 { return 1 }}); err != nil {
					return err
				}
			}
			return nil
		}
		broken := 0
		for ; ; broken++ {
			run(t, client, "FUNCTION", "FLUSH")
			run(t, client, "FLUSHALL")
			testkit.OK(t, s.loadOnce("k"))
			run(t, client, "SET", "asks", fmt.Sprint(broken+1))
			err := hold()
			if err == nil {
				break
			}
			if !strings.Contains(err.Error(), "broken by a test") {
				t.Fatal(err)
			}
			if err := hold(); err != nil {
				t.Fatalf("%s, after command %d failed: %v", limit, broken+1, err)
			}
		}
		if broken < 10 {
			t.Errorf("%s: %d calls were broken", limit, broken)
		}
	}
}
