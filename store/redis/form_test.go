package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

// Data of a later version is an error for calls that use it, and is not changed. The
// same holds for a hash of another program. Damaged data is ignored.
func TestFormOfALaterVersion(t *testing.T) {
	client := connect(t)
	s := storeOn(t, client, Options{})
	good := weir.Op{Key: "good", Limit: weir.MustCompile("fixed_window 5/1d"), Cost: 1}
	for _, text := range []string{"token_bucket 5/1d", "fixed_window 5/1d", "sliding_window 5/1d", "sliding_buckets 5/1d", "sliding_log 5/1d"} {
		op := weir.Op{Key: "k", Limit: weir.MustCompile(text), Cost: 1}
		key := s.keyOf(&op)
		if _, err := s.Take(t.Context(), nil, op); err != nil {
			t.Fatal(err)
		}
		value := []byte(run(t, client, "GET", key))
		value[0] += 32
		run(t, client, "SET", key, string(value))
		later := run(t, client, "GET", key)
		for _, ops := range [][]weir.Op{{op}, {op, good}} { // alone, and with others
			if _, err := s.Take(t.Context(), nil, ops...); err == nil || !strings.Contains(err.Error(), "that this version of weir did not write") {
				t.Errorf("%s: Take = %v", text, err)
			}
		}
		if err := s.Refund(t.Context(), weir.Op{Key: "k", Limit: op.Limit, Cost: 1, Receipt: weir.Latest}); err == nil {
			t.Errorf("%s: a refund was no error", text)
		}
		if got := run(t, client, "GET", key); got != later {
			t.Errorf("%s: it was overwritten: %q", text, got)
		}
		if err := s.Reset(t.Context(), op); err != nil {
			t.Errorf("%s: Reset = %v", text, err)
		}
		if d, err := s.Take(t.Context(), nil, op); err != nil || !d[0].Allowed {
			t.Errorf("%s after a reset: %+v %v", text, d, err)
		}
	}
	log := weir.Op{Key: "log", Limit: weir.MustCompile("sliding_log 5/1d"), Cost: 1}
	run(t, client, "HSET", s.keyOf(&log), "f", "v")
	if _, err := s.Take(t.Context(), nil, log); err == nil || run(t, client, "HGET", s.keyOf(&log), "f") != "v" {
		t.Errorf("Take of somebody's hash = %v", err)
	}
	for _, damaged := range []string{"", " ", " 3456789012345678901234", " 345678901234567890123456", "\x00damaged"} {
		run(t, client, "SET", s.keyOf(&log), damaged) // also instead of the hash
		if d, err := s.Take(t.Context(), nil, log); err != nil || d[0].Remaining != 4 {
			t.Errorf("%q: %+v %v", damaged, d, err)
		}
	}
}

// What is too short for a state, but begins as none that this version writes, is somebody else's:
// an error as well, and not changed, in whichever script it is read.
func TestShortForeignValues(t *testing.T) {
	client := connect(t)
	s := storeOn(t, client, Options{})
	other := weir.Op{Key: "other", Limit: weir.MustCompile("fixed_window 5/1d"), Cost: 1}
	wide := weir.Op{Key: "other", Limit: weir.MustCompile("sliding_buckets 5/1d"), Cost: 1}
	for _, text := range []string{
		"token_bucket 5/1d", "leaky_bucket 5/1d", "fixed_window 5/1d", "fixed_window 5/month", "sliding_window 5/1d", "sliding_buckets 5/1d", "sliding_log 5/1d", "in_flight 5/1d",
	} {
		op := weir.Op{Key: "k", Limit: weir.MustCompile(text), Cost: 1}
		key := s.keyOf(&op)
		for _, value := range []string{"!", "hello", `{"count": 4}`, "\xff", "!23456789012345678901234567"} {
			run(t, client, "SET", key, value)
			check := func(what string, err error) {
				t.Helper()
				if err == nil || !strings.Contains(err.Error(), "that this version of weir did not write") {
					t.Errorf("%s, %q: %s = %v", text, value, what, err)
				}
				if got := run(t, client, "GET", key); got != value {
					t.Errorf("%s, %q: %s made it %q", text, value, what, got)
					run(t, client, "SET", key, value)
				}
			}
			for what, ops := range map[string][]weir.Op{"alone": {op}, "with another": {op, other}, "with a tail": {wide, op}} {
				_, err := s.Take(t.Context(), nil, ops...)
				check("Take "+what, err)
				_, err = s.Peek(t.Context(), nil, ops...)
				check("Peek "+what, err)
				_, err = s.Reserve(t.Context(), nil, weir.Reservation{ID: weir.NewHoldID(), TTL: time.Minute}, ops...)
				check("Reserve "+what, err)
			}
			check("Refund", s.Refund(t.Context(), weir.Op{Key: "k", Limit: op.Limit, Cost: 1, Receipt: weir.Latest}))
		}
		if err := s.Reset(t.Context(), op); err != nil {
			t.Errorf("%s: Reset = %v", text, err)
		}
		if d, err := s.Take(t.Context(), nil, op); err != nil || !d[0].Allowed {
			t.Errorf("%s after a reset: %+v %v", text, d, err)
		}
	}
}
