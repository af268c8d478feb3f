package redis

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/traffic/scenario"
)

// counting makes every script add up the words of eight bytes that it moves from or to
// Redis, and those that it reads or writes one by one.
const counting = `
  local function size(x)
    if type(x) == 'string' then
      touched = touched + #x / 8
    elseif type(x) == 'table' then
      for _, y in pairs(x) do size(y) end
    end
  end
  call = function(...)
    touched = touched + 8 -- a call takes as long as some words
    size({ ... })
    local reply = redis.call(...)
    size(reply)
    return reply
  end
  pack = function(...)
    touched = touched + select('#', ...)
    return struct.pack(...)
  end
  parse = function(...)
    local words = { struct.unpack(...) }
    touched = touched + #words
    return unpack(words, 1, #words)
  end
end
`

func countWords(t *testing.T) {
	useFiles(t, strings.NewReplacer("local function begin(args)\n", "local touched = 0\n\nlocal function begin(args)\n", "    call = redis.call\n  end\n", counting,
		"  return cmsgpack.pack(", "  redis.call('SET', 'touched', touched)\n  touched = 0\n  return cmsgpack.pack(").Replace)
}

// touchedWords is how many the last call has touched.
func touchedWords(t *testing.T, client rueidis.Client) int {
	t.Helper()
	n, err := client.Do(t.Context(), client.B().Get().Key("touched").Build()).AsFloat64()
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// A log grows and slides without ever being copied.
func TestWordsWhileALogGrows(t *testing.T) {
	countWords(t)
	client := connect(t)
	var clock fake
	s := storeOn(t, client, Options{Clock: clock.Now, Timeout: 10 * time.Second})
	op := weir.Op{Key: "k", Limit: weir.MustCompile("sliding_log 4000/4ms"), Cost: 1}
	most, sum := 0, 0
	for i := range 6_000 {
		clock.Set(weir.Micros(1_790_000_000_000_000 + i))
		if d := runVerb(t, s, take, op); !d.Allowed {
			t.Fatalf("%d: %+v", i, d)
		}
		touched := touchedWords(t, client)
		most = max(most, touched)
		sum += touched
	}
	if mean := sum / 6_000; most > 3000 || mean > 800 {
		t.Errorf("a call touched up to %d words, %d on average; want at most 3000 and 800", most, mean)
	}
}

// Nor does a call of many sub-windows ask for each of them.
func TestWordsOfSubWindows(t *testing.T) {
	countWords(t)
	client := connect(t)
	var clock fake
	s := storeOn(t, client, Options{Clock: clock.Now, Timeout: 10 * time.Second})
	op := weir.Op{Key: "k", Limit: weir.MustCompile("sliding_buckets 100/4095s buckets 4095"), Cost: 1}
	for _, c := range []struct {
		name  string
		at    weir.Micros // in seconds
		cost  int64
		words int
	}{
		{"first", 0, 1, 13_000}, {"the next", 1, 1, 100}, {"after a pause", 4000, 98, 26_000}, {"denied", 4090, 50, 15_000},
	} {
		clock.Set(1_790_000_000_000_000 + 1_000_000*c.at)
		op.Cost = c.cost
		runVerb(t, s, take, op)
		if touched := touchedWords(t, client); touched > c.words {
			t.Errorf("%s: the call touched %d words, want at most %d", c.name, touched, c.words)
		}
	}
}

// writeLog writes a log as the script does, with a unit at each microsecond before now.
func writeLog(t *testing.T, client rueidis.Client, key string, limit *weir.Compiled, now weir.Micros) {
	t.Helper()
	const open, page = 120, 480
	n := limit.Limit().N
	period := limit.Numbers().Period
	entry := func(i int64) []byte {
		return binary.BigEndian.AppendUint64(nil, uint64(int64(now)-n+i)<<21|uint64(i+1)&(1<<21-1))
	}
	fields := client.B().Hset().Key(key).FieldValue()
	var directory, text []byte
	number, closed := uint32(0), (n-open)/page*page
	for i := range closed {
		if text = append(text, entry(i)...); len(text) == 8*page {
			number++
			name := binary.BigEndian.AppendUint32(nil, number)
			directory = binary.BigEndian.AppendUint32(append(directory, name...), uint32(i+1))
			fields = fields.FieldValue(string(name), string(text))
			text = text[:0]
		}
	}
	head := binary.BigEndian.AppendUint64(nil, uint64(32)<<56|uint64(int64(now)-1+period))
	head = binary.BigEndian.AppendUint32(head, uint32(n))
	head = binary.BigEndian.AppendUint32(head, uint32(n))
	head = append(head, binary.BigEndian.AppendUint64(nil, uint64(int64(now)+2*period))[1:]...)
	head = append(head, 0, 0, 0, 1, 0, 0, page>>8, page&255, 0, 0) // the first page, the rank after it, nothing to skip
	head = binary.BigEndian.AppendUint32(head, number+1)
	head = binary.BigEndian.AppendUint32(head, 1)
	for i := closed; i < n; i++ {
		head = append(head, entry(i)...)
	}
	fields = fields.FieldValue("s", string(head)).FieldValue("d", string(directory))
	if err := client.Do(t.Context(), fields.Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if err := client.Do(t.Context(), client.B().Pexpire().Key(key).Milliseconds(3_600_000).Build()).Error(); err != nil {
		t.Fatal(err)
	}
}

// No call touches more than a few pages and the directory, whatever is done to a log of
// any N; and it is answered as by the arithmetic.
func TestWordsOfACall(t *testing.T) {
	countWords(t)
	client := connect(t)
	var clock fake
	s := storeOn(t, client, Options{Clock: clock.Now, Timeout: 10 * time.Second})
	for _, n := range []int64{1_000, 30_000, weir.MaxLogUnits} {
		limit := weir.MustCompile(fmt.Sprintf("sliding_log %d/1h", n))
		fewer := weir.MustCompile(fmt.Sprintf("sliding_log %d/1h", n/10))
		counts := weir.MustCompile(fmt.Sprintf("sliding_log %d/1h count_denied", n))
		start := weir.Micros(1_790_000_000_000_000)
		period := weir.Micros(limit.Numbers().Period)
		receipt := func(i int64) weir.Receipt { return weir.Receipt(start - weir.Micros(n-i) + period) }

		model := scenario.NewModel()
		op := weir.Op{Key: "k", Limit: limit, Cost: 1}
		for i := range n {
			model.Now = start - weir.Micros(n-i)
			if _, err := model.Take(t.Context(), nil, op); err != nil {
				t.Fatal(err)
			}
		}
		writeLog(t, client, s.keyOf(&op), limit, start)
		if r, m := remembered(t, client, s, op), inWords(limit, model.Record("k", limit)); r != m {
			t.Fatalf("N = %d: the log was not written as it would be: %.500s, want %.500s", n, r, m)
		}
		for _, c := range []struct {
			name  string
			at    weir.Micros // since the log is full
			verb  verb
			op    weir.Op
			words int
		}{
			{"denied", 0, take, weir.Op{Limit: limit, Cost: 1}, 1200},
			{"denied, a large cost", 0, take, weir.Op{Limit: limit, Cost: n / 2}, 6000},
			{"denied, all of it", 0, take, weir.Op{Limit: limit, Cost: n}, 6000},
			{"lowered N", 0, take, weir.Op{Limit: fewer, Cost: 1}, 6000},
			{"refund of the oldest", 0, refund, weir.Op{Limit: limit, Cost: 1, Receipt: receipt(0)}, 30_000},
			{"refund in the middle", 0, refund, weir.Op{Limit: limit, Cost: 1, Receipt: receipt(n / 2)}, 30_000},
			{"refund of the newest", 0, refund, weir.Op{Limit: limit, Cost: 1, Receipt: receipt(n - 1)}, 30_000},
			{"refund of what was never taken", 0, refund, weir.Op{Limit: limit, Cost: 1, Receipt: receipt(n)}, 30_000},
			{"allowed, and to a page", 1, take, weir.Op{Limit: limit, Cost: 1}, 8000},
			{"again", 1, take, weir.Op{Limit: limit, Cost: 1}, 1500},
			{"denied and counted", 2, take, weir.Op{Limit: counts, Cost: n / 3}, 15_000},
			{"refund of the newest third", 2, refund, weir.Op{Limit: limit, Cost: n / 3, Receipt: weir.Latest}, 10_000},
			{"a large cost", 3, take, weir.Op{Limit: limit, Cost: n / 10}, 6000},
			{"half of the rest expires", period - weir.Micros(n/3), take, weir.Op{Limit: limit, Cost: 1}, 15_000},
			{"some slide", period - weir.Micros(n/3) + 3, take, weir.Op{Limit: limit, Cost: 1}, 6000},
			{"all expires", 3 * period, take, weir.Op{Limit: limit, Cost: 1}, 6000},
			{"reset", 3 * period, reset, weir.Op{Limit: limit, Cost: 1}, 1500},
		} {
			clock.Set(start + c.at)
			model.Now = start + c.at
			c.op.Key = "k"
			got, want := runVerb(t, s, c.verb, c.op), runVerb(t, model, c.verb, c.op)
			if got != want {
				t.Errorf("N = %d, %s: %+v, want %+v", n, c.name, got, want)
			}
			if touched := touchedWords(t, client); touched > c.words {
				t.Errorf("N = %d, %s: the call touched %d words, want at most %d", n, c.name, touched, c.words)
			}
		}
		if r, m := remembered(t, client, s, op), inWords(limit, model.Record("k", limit)); r != m {
			t.Errorf("N = %d: Redis has %.500s, the arithmetic %.500s", n, r, m)
		}
	}
}

// runVerb does it, and returns the decision if there is one.
func runVerb(t *testing.T, s weir.Store, verb verb, op weir.Op) (d weir.Decision) {
	t.Helper()
	var decisions []weir.Decision
	var err error
	switch verb {
	case take:
		decisions, err = s.Take(t.Context(), nil, op)
	case refund:
		err = s.Refund(t.Context(), op)
	case reset:
		err = s.Reset(t.Context(), op)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(decisions) > 0 {
		d = decisions[0]
	}
	return d
}
