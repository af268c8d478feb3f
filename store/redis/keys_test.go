package redis

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/testkit/testredis"
)

func TestKeyNames(t *testing.T) {
	s := &Store{prefix: DefaultPrefix}
	for _, c := range []struct{ name, limit, key, want string }{
		{"", "token_bucket 100/1m", "alice", "weir:T1m{alice}"},
		{"login", "fixed_window 5/90s", "203.0.113.7", "weir:login:F90s{203.0.113.7}"},
		{"", "sliding_buckets 5/1h", "a", "weir:B1h/60{a}"},
		{"a:b{c}%", "sliding_log 5/1d", "}{", "weir:a%3Ab%7Bc%7D%25:L1d{%}{}"},
	} {
		limit := weir.MustParseLimit(c.limit)
		limit.Name = c.name
		compiled, err := limit.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if got := s.keyOf(&weir.Op{Key: c.key, Limit: compiled}); got != c.want {
			t.Errorf("%q %s %q is under %q, want %q", c.name, c.limit, c.key, got, c.want)
		}
	}
}

// Whatever is remembered has a time to live, which does not end before it is as good as
// new, nor much later.
func TestEveryKeyExpires(t *testing.T) {
	client := connect(t)
	s := storeOn(t, client, Options{})
	for _, text := range []string{
		"fixed_window 5/1m", "sliding_window 5/1m", "sliding_buckets 5/1m", "sliding_log 5/1m", "token_bucket 5/1m", "leaky_bucket 5/1m shape",
		"fixed_window 1000/1s", "sliding_window 500/1s", "token_bucket 40/1s", "leaky_bucket 100/1s",
	} {
		op := weir.Op{Key: "k", Limit: weir.MustCompile(text), Cost: 1}
		for range 100 { // whether or not they are allowed
			start := time.Now()
			longest := 2 * op.Limit.Limit().Period // until it is fully reset, at the most
			d, err := s.Take(t.Context(), nil, op)
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(start) + time.Millisecond // in which Redis reads its clock more than once
			at, err := client.Do(t.Context(), client.B().Pexpiretime().Key(s.keyOf(&op)).Build()).AsInt64()
			if err != nil {
				t.Fatal(err)
			}
			if at < 0 && time.Since(start) >= d[0].ResetAfter {
				continue // the machine stood still meanwhile
			}
			// Compared as instants, which no time between the two calls changes.
			if late := weir.Micros(at * 1000).Sub(d[0].ResetAt); late < -took || late > max(time.Second, longest/4)+took {
				t.Errorf("%s: it expires %v after it is fully reset", text, late)
			}
		}
	}
}

// A later charge makes a key live longer, also where only a part of it is written.
func TestExpiryIsExtended(t *testing.T) {
	client := connect(t)
	s := storeOn(t, client, Options{})
	// Sub-windows end together, so a key of these may live for up to one of them less. The expiry of a log
	// is late by a second at first, which is over.
	for text, less := range map[string]int64{"sliding_log 100/4s": 10, "sliding_buckets 100/4s buckets 400": 20, "sliding_buckets 100/4s buckets 100": 50, "token_bucket 100/1h": 10} {
		op := weir.Op{Key: "k", Limit: weir.MustCompile(text), Cost: 3}
		left := func() int64 {
			ttl, err := client.Do(t.Context(), client.B().Pttl().Key(s.keyOf(&op)).Build()).AsInt64()
			if err != nil {
				t.Fatal(err)
			}
			return ttl
		}
		take := func() {
			if _, err := s.Take(t.Context(), nil, op); err != nil {
				t.Fatal(err)
			}
		}
		take()
		first := left()
		eventually(t, "more than a second", func() bool { return left() < first-1100 })
		began := time.Now()
		take()
		// It lives as long as after the first charge, less what asking has taken.
		if after, asking := left(), time.Since(began).Milliseconds(); after < first-asking-less {
			t.Errorf("%s: it lives for %d ms, after a charge a second ago for %d", text, after, first)
		}
	}
}

// A place that is given back leaves its key, which is still used when the next is taken, and
// expires as if it had not been given back.
func TestKeyOfAPlaceStays(t *testing.T) {
	client := connect(t)
	s := storeOn(t, client, Options{})
	op := weir.Op{Key: "k", Limit: weir.MustCompile("in_flight 2/1h"), Cost: 1}
	key := s.keyOf(&op)
	expires := ""
	for range 3 {
		d, err := s.Take(t.Context(), nil, op)
		if err != nil || d[0].Remaining != 1 {
			t.Fatalf("%+v %v", d, err)
		}
		back := op
		back.Receipt = d[0].Receipt
		if err := s.Refund(t.Context(), back); err != nil {
			t.Fatal(err)
		}
		now := run(t, client, "PEXPIRETIME", key)
		if at, err := strconv.ParseInt(now, 10, 64); err != nil || weir.Micros(at*1000).Sub(d[0].ResetAt) < 0 || expires != "" && now != expires {
			t.Errorf("it expires at %s, before at %q, and would have been free at %d", now, expires, d[0].ResetAt)
		}
		expires = now
		if got := readLog(t, client, key, op.Limit).String(); got != "fresh 0, 0 units:" {
			t.Errorf("it has %s", got)
		}
	}
	if err := s.Reset(t.Context(), op); err != nil || run(t, client, "EXISTS", key) != "0" {
		t.Errorf("after a reset it is there, %v", err)
	}
}

// A key costs at most 120 bytes, by Redis's own reckoning, and a unit of a log
// at most ten.
func TestMemory(t *testing.T) {
	client := connect(t)
	s := storeOn(t, client, Options{})
	usage := func(op weir.Op) int64 {
		if _, err := s.Take(t.Context(), nil, op); err != nil {
			t.Fatal(err)
		}
		n, err := client.Do(t.Context(), client.B().MemoryUsage().Key(s.keyOf(&op)).Samples(0).Build()).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	client31 := strings.Repeat("x", 31)
	for _, text := range []string{"fixed_window 100/1m", "sliding_window 100/1m", "token_bucket 100/1m", "leaky_bucket 100/1m"} {
		if got := usage(weir.Op{Key: client31, Limit: weir.MustCompile(text), Cost: 1}); got > 120 {
			t.Errorf("%s: %d bytes, want at most 120", text, got)
		}
	}
	for _, text := range []string{"sliding_log 10/1h", "sliding_log 1000000/1h"} { // a charge is one entry
		op := weir.Op{Key: "one", Limit: weir.MustCompile(text)}
		op.Cost = op.Limit.Capacity()
		if got := usage(op); got > 120 {
			t.Errorf("a charge of all units of %s has %d bytes, want at most 120", text, got)
		}
	}
	now := weir.Micros(1_790_000_000_000_000)
	s = storeOn(t, client, Options{Clock: func() weir.Micros { now++; return now }})
	for _, n := range []int64{5, 100, 120, 121, 200, 241, 500, 1000, 5000} {
		op := weir.Op{Key: fmt.Sprint(n), Limit: weir.MustCompile(fmt.Sprintf("sliding_log %d/1h", n)), Cost: 1}
		for range n - 1 {
			if _, err := s.Take(t.Context(), nil, op); err != nil {
				t.Fatal(err)
			}
		}
		if got := usage(op); got > 10*n+300 {
			t.Errorf("a log of %d units has %d bytes, want at most 10 a unit, and 300", n, got)
		}
	}
}

// A key that is not ours is an error, and stays as it is.
func TestForeignKey(t *testing.T) {
	client := connect(t)
	s := storeOn(t, client, Options{})
	op := weir.Op{Key: "k", Limit: weir.MustCompile("5/1m"), Cost: 1}
	if err := client.Do(t.Context(), client.B().Sadd().Key(s.keyOf(&op)).Member("m").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Take(t.Context(), nil, op); err == nil || !strings.Contains(err.Error(), `"weir:T1m{k}" contains data that this version of weir did not write`) {
		t.Errorf("Take of a set = %v", err)
	}
}

// A request of which one key is not ours is an error, whatever its other ops are, and charges
// none of them.
func TestForeignKeyAmongOthers(t *testing.T) {
	client := connect(t)
	s := storeOn(t, client, Options{})
	counts := weir.Op{Key: "k", Limit: weir.MustCompile("fixed_window 5/1d count_denied"), Cost: 1}
	denied := weir.Op{Key: "k", Limit: weir.MustCompile("sliding_window 5/1d"), Cost: 6}
	foreign := weir.Op{Key: "k", Limit: weir.MustCompile("token_bucket 5/1m"), Cost: 1}
	run(t, client, "SADD", s.keyOf(&foreign), "m")
	for _, ops := range [][]weir.Op{{counts, foreign}, {foreign, counts}, {denied, counts, foreign}, {counts, denied, foreign}} {
		if _, err := s.Take(t.Context(), nil, ops...); err == nil || !strings.Contains(err.Error(), "did not write") {
			t.Errorf("Take = %v", err)
		}
		if d, err := s.Peek(t.Context(), nil, counts); err != nil || d[0].Remaining != 5 {
			t.Errorf("%+v %v", d, err)
		}
	}
}

// The scripts are there again after somebody has flushed them.
func TestScriptFlush(t *testing.T) {
	client := connect(t)
	s := storeOn(t, client, Options{})
	op := weir.Op{Key: "k", Limit: weir.MustCompile("sliding_log 5/1h"), Cost: 1}
	for want := int64(4); want >= 0; want-- {
		if err := client.Do(t.Context(), client.B().ScriptFlush().Build()).Error(); err != nil {
			t.Fatal(err)
		}
		d, err := s.Take(t.Context(), nil, op)
		if err != nil || d[0].Remaining != want {
			t.Fatalf("%+v, %v; want %d remaining", d, err, want)
		}
	}
}

// The slot of a key is where Redis looks for it.
func TestSlotOf(t *testing.T) {
	server := testredis.Start(t, "--cluster-enabled", "yes")
	for _, key := range []string{
		"", "a", "weir:T1m{alice}", "weir:T1m{}{}", "weir:T1m{a}b}", "weir:T1m{{a}}", "weir:T1m{\x00\xff}", "{weir}:T1m{a}",
		"no}brace{", "{open", strings.Repeat("x", 1024),
	} {
		if got := strconv.Itoa(int(slotOf(key))); got != server.Do("CLUSTER", "KEYSLOT", key) {
			t.Errorf("%.40q: %s, Redis says %s", key, got, server.Do("CLUSTER", "KEYSLOT", key))
		}
	}
}
