package redis

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir"
)

// logContents is a sliding log as a person would write it down.
type logContents struct {
	fresh   int64
	units   int64 // that may count
	entries []logEntry

	pages  []int // how many entries each has, if there are any
	fields int   // of the hash
}

type logEntry struct {
	time  int64
	newer int64 // units after it
}

func (l logContents) String() string {
	b := fmt.Appendf(nil, "fresh %d, %d units:", l.fresh, l.units)
	left := l.units
	for _, e := range l.entries { // there may be a million
		if units := left - e.newer; units > 0 {
			b = strconv.AppendInt(append(b, ' '), units, 10)
			b = strconv.AppendInt(append(b, " at "...), e.time, 10)
			left = e.newer
		}
	}
	return string(b)
}

// add decodes entries; newer is how many units are after the last of them.
func (l *logContents) add(limit *weir.Compiled, words []uint64, newer int64) {
	period := limit.Numbers().Period
	newest, rankBits := uint64(l.fresh-period), 64-max(43, bits.Len64(uint64(period)))
	mask := uint64(1)<<rankBits - 1
	for _, w := range words {
		ago := (newest - w>>rankBits) & (1<<(64-rankBits) - 1)
		l.entries = append(l.entries, logEntry{int64(newest - ago), newer + int64((words[len(words)-1]-w)&mask)})
	}
}

// arithmeticLog reads a log of the arithmetic's.
func arithmeticLog(limit *weir.Compiled, r weir.Record) logContents {
	const rankBits = 21
	l := logContents{fresh: int64(r.State.Fresh), units: r.State.B & (1<<rankBits - 1)}
	end := r.State.A >> rankBits
	var words []uint64
	for i := end - r.State.B>>rankBits; i < end; i++ {
		words = append(words, uint64(r.Tail[i&int64(len(r.Tail)-1)]))
	}
	l.add(limit, words, 0)
	return l
}

func wordsOf(t *testing.T, text string) (words []uint64) {
	t.Helper()
	if len(text)%8 != 0 {
		t.Fatalf("%d bytes are no entries", len(text))
	}
	for i := 0; i < len(text); i += 8 {
		words = append(words, binary.BigEndian.Uint64([]byte(text[i:])))
	}
	return words
}

// smallPages makes pages of few entries, so that a short history fills many.
var smallPages = strings.NewReplacer("local OPEN = 960", "local OPEN = 16", "local PAGE = 3840", "local PAGE = 40", "local SWEEP = 32", "local SWEEP = 2")

func useSmallPages(t *testing.T) {
	useFiles(t, smallPages.Replace)
	for _, size := range []string{"OPEN = 16", "PAGE = 40", "SWEEP = 2"} {
		if !strings.Contains(theLibrary().functions, "local "+size+" ") {
			t.Fatalf("%s is not where it was", size)
		}
	}
}

// A log in pages is what the arithmetic has in one ring, while it grows, shrinks, is
// given back in parts, and its limit changes.
func TestLogInPages(t *testing.T) {
	useSmallPages(t)
	client := connect(t)
	for _, texts := range [][]string{
		{"sliding_log 60/1m"},
		{"sliding_log 200/1m", "sliding_log 20/1m", "sliding_log 60/1m"},
		{"sliding_log 60/1m", "sliding_log 20/1m count_denied", "sliding_log 200/1m count_denied"},
	} {
		var limits []*weir.Compiled
		for _, text := range texts {
			limits = append(limits, weir.MustCompile(text))
		}
		if err := client.Do(t.Context(), client.B().Flushall().Build()).Error(); err != nil {
			t.Fatal(err)
		}
		compareHistories(t, client, limits, 800, limits[0].Numbers().Period/4)
	}
}

// However many charges are given back, pages stay full enough, and what does not count
// any more is deleted.
func TestPagesDoNotPileUp(t *testing.T) {
	useSmallPages(t) // of 2 and 5 entries; 2 are deleted in a call
	client := connect(t)
	var clock fake
	s := storeOn(t, client, Options{Clock: clock.Now})
	op := weir.Op{Key: "k", Limit: weir.MustCompile("sliding_log 200/1s"), Cost: 1}
	random := rand.New(rand.NewPCG(5, 6))
	now := weir.Micros(1_790_000_000_000_000)
	var taken []weir.Op
	for step := range 1200 {
		now += 5_000
		if step == 900 {
			now += 900_000
		}
		clock.Set(now)
		d, err := s.Take(t.Context(), nil, op)
		if err != nil || !d[0].Allowed {
			t.Fatalf("step %d: %+v %v", step, d, err)
		}
		op.Receipt = d[0].Receipt
		// Four of five are given back, in any order.
		if taken = append(taken, op); len(taken) > 20 && step%5 != 0 {
			i := random.IntN(len(taken))
			if err := s.Refund(t.Context(), taken[i]); err != nil {
				t.Fatal(err)
			}
			taken = slices.Delete(taken, i, i+1)
		}
		l := readLog(t, client, s.keyOf(&op), op.Limit)
		if most := 2*len(l.entries)/5 + 3; len(l.pages) > most {
			t.Fatalf("step %d: %d entries are in pages of %v", step, len(l.entries), l.pages)
		}
		// Between the leap and the end, what it left is deleted.
		if most := len(l.pages) + 4; l.fields > most && step < 900 || step == 1199 && l.fields > most {
			t.Fatalf("step %d: %d fields for %d pages", step, l.fields, len(l.pages))
		}
	}
}

// A log that does not need its pages any more is a string again, and a small one was
// never anything else.
func TestSmallLogIsAString(t *testing.T) {
	client := connect(t)
	var clock fake
	s := storeOn(t, client, Options{Clock: clock.Now})
	op := weir.Op{Key: "k", Limit: weir.MustCompile("sliding_log 1000/1s"), Cost: 1}
	now := weir.Micros(1_790_000_000_000_000)
	take := func(n int, want string) {
		t.Helper()
		for range n {
			now++
			clock.Set(now)
			if _, err := s.Take(t.Context(), nil, op); err != nil {
				t.Fatal(err)
			}
		}
		if got := run(t, client, "TYPE", s.keyOf(&op)); got != want {
			t.Errorf("it is a %s, want a %s", got, want)
		}
		if ttl := run(t, client, "PTTL", s.keyOf(&op)); ttl == "-1" {
			t.Error("it never expires")
		}
	}
	take(120, "string")
	take(1, "hash")
	now += 900_000
	take(50, "hash")
	now += 200_000 // the page is gone, what was in the value is not
	take(1, "string")
	take(200, "hash")
	op.Receipt, op.Cost = weir.Latest, 200
	if err := s.Refund(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	op.Cost = 1
	take(1, "string")
}

// readLog reads a log of Redis's, as a string or a hash.
func readLog(t *testing.T, client rueidis.Client, key string, limit *weir.Compiled) (l logContents) {
	t.Helper()
	kind, err := client.Do(t.Context(), client.B().Type().Key(key).Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	switch kind {
	case "none":
		return l
	case "string":
		fields["s"], err = client.Do(t.Context(), client.B().Get().Key(key).Build()).ToString()
	default:
		fields, err = client.Do(t.Context(), client.B().Hgetall().Key(key).Build()).AsStrMap()
		l.fields = len(fields)
	}
	if err != nil {
		t.Fatal(err)
	}
	u := unpacker(fields["s"])
	number := func(size int) int64 {
		n, err := u.bigEndian(size)
		if err != nil {
			t.Fatal(err)
		}
		return int64(n)
	}
	if form := number(1); form != 32 {
		t.Fatalf("a log of form %d", form)
	}
	l.fresh = number(7)
	rank := number(4)
	l.units = number(4)
	if expires := number(7); expires < l.fresh {
		t.Fatalf("it expires at %d, and is fully reset at %d", expires, l.fresh)
	}
	if kind == "hash" {
		first, after, skip := number(4), number(4), number(2)
		number(4)
		number(4)
		directory := fields["d"]
		if len(directory) == 0 || int64(binary.BigEndian.Uint32([]byte(directory))) != first || int64(binary.BigEndian.Uint32([]byte(directory[4:]))) != after {
			t.Fatalf("the first page is %d, with %d after it, but the directory begins with %x", first, after, directory)
		}
		for ; len(directory) > 0; directory = directory[8:] {
			page := fields[directory[:4]][skip:]
			if len(page) == 0 {
				t.Fatalf("page %x is empty", directory[:4])
			}
			l.pages = append(l.pages, len(page)/8)
			skip = 0
			after := int64(binary.BigEndian.Uint32([]byte(directory[4:])))
			l.add(limit, wordsOf(t, page), (rank-after)&(1<<32-1))
		}
	}
	if len(u) == 0 {
		t.Fatal("the value has no entries")
	}
	l.add(limit, wordsOf(t, string(u)), 0)
	return l
}
