package weir_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir"
)

func TestParseLimit(t *testing.T) {
	for in, want := range map[string]weir.Limit{
		"100/1m":     {N: 100, Period: time.Minute},
		"100/minute": {N: 100, Period: time.Minute},
		"5/s":        {N: 5, Period: time.Second},
		"1000/1d":    {N: 1000, Period: 24 * time.Hour},
		"token_bucket 100/1m burst 200": {
			N: 100, Period: time.Minute, Burst: 200,
		},
		"  fixed_window   3/5s  count_denied ": {
			Algorithm: weir.FixedWindow, N: 3, Period: 5 * time.Second, CountDenied: true,
		},
		"sliding_buckets 100/1h buckets 12": {
			Algorithm: weir.SlidingBuckets, N: 100, Period: time.Hour, Buckets: 12,
		},
		"leaky_bucket 100/1m burst 400 shape": {
			Algorithm: weir.LeakyBucket, N: 100, Period: time.Minute, Burst: 400, Shape: true,
		},
	} {
		got, err := weir.ParseLimit(in)
		if err != nil || got != want {
			t.Errorf("ParseLimit(%q) = %+v, %v; want %+v", in, got, err, want)
		}
		again, err := weir.ParseLimit(got.String())
		if err != nil || again != got {
			t.Errorf("ParseLimit(%q) = %+v, %v; want what was written", got.String(), again, err)
		}
	}
}

// Each error names the field and the remedy.
func TestParseLimitErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  `weir: limit: "" has no rate; write for example 100/1m`,
		"token_bucket":                      `weir: limit: "token_bucket" has no rate`,
		"tokenbucket 1/1s":                  `weir: algorithm: "tokenbucket" is unknown; did you mean "token_bucket"?`,
		"sliding_window_log 1/1s":           `weir: algorithm: "sliding_window_log" is called "sliding_log" here`,
		"sliding_window_counter 1/1s":       `weir: algorithm: "sliding_window_counter" is called "sliding_window" here`,
		"fixed_window_counter 1/1s":         `weir: algorithm: "fixed_window_counter" is called "fixed_window" here`,
		"GCRA 1/1s":                         `weir: algorithm: "GCRA" is called "token_bucket" here`,
		"magic 1/1s":                        `weir: algorithm: "magic" is unknown; choose one of token_bucket, leaky_bucket,`,
		"100":                               `weir: limit: "100" is not a rate; write N/period, for example 100/1m`,
		"x/1m":                              `weir: limit: "x" is not a whole number of units`,
		"-1/1m":                             `weir: limit: "-1" is not a whole number of units`,
		"1.5/1m":                            `weir: limit: "1.5" is not a whole number of units`,
		"99999999999999999999/1m":           `weir: limit: "99999999999999999999" is not a whole number of units`,
		"0/1m":                              `weir: limit: 0 units allow no request; N must be at least 1`,
		"1125899906842625/1s":               `weir: limit: 1125899906842625 units are more than can be counted exactly`,
		"100/":                              `weir: period: empty duration`,
		"100/0s":                            `weir: period: 0s is not a valid period`,
		"100/1x":                            `weir: period: bad duration "1x"; write a number and a unit`,
		"100/1ns":                           `weir: period: 1ns is not a whole number of microseconds`,
		"100/3651d":                         `weir: period: 3651d is longer than ten years`,
		"fixed_window 5/1m burst 10":        `weir: burst: fixed_window has no burst`,
		"5/1m burst":                        `weir: burst: a number is required`,
		"5/1m burst -1":                     `weir: burst: "-1" is not a whole number`,
		"5/1m burst 0":                      `weir: burst: "0" is not a whole number of at least 1`,
		"5/1m brust 10":                     `weir: limit: "brust" is unknown; did you mean "burst"?`,
		"5/1m burst 5 burst 7":              `weir: limit: "burst" is given twice`,
		"5/1m hello":                        `weir: limit: "hello" is unknown; after the rate come zone, starts, burst, buckets, shape, count_denied`,
		"5/1m buckets 10":                   `weir: buckets: only sliding_buckets has sub-windows, token_bucket has none`,
		"sliding_buckets 5/1m buckets 1":    `weir: buckets: 1 sub-windows cannot slide`,
		"sliding_buckets 5/1m buckets 4096": `weir: buckets: 4096 sub-windows are too many; write at most 4095`,
		"sliding_buckets 5/5us buckets 6":   `weir: buckets: 6 sub-windows in 5us would be shorter than a microsecond each; write at most 5`,
		"5/1m shape":                        `weir: shape: only a leaky_bucket is a queue, token_bucket is not`,
		"5/1m count_denied":                 `weir: count_denied: a token_bucket cannot count denied requests`,
		"sliding_log 1048577/1d":            `weir: limit: a sliding_log of 1048577 units would keep 8388616 bytes a key`,
		"sliding_log 262145/365d":           `weir: limit: a sliding_log over 365d has room for 262144 units, not 262145; lower N or the period, or choose sliding_buckets`,
		"in_flight 5/1m count_denied":       `weir: count_denied: a request that is denied is not in flight; remove count_denied`,
		"in_flight 5/1m release":            `weir: release: a place of in_flight is free when its time is over`,
		"in_flight 5/1m burst 9":            `weir: burst: in_flight has no burst`,
		"in_flight 1048577/1m":              `weir: limit: 1048577 places are too many to be kept for a key; write at most 1048576`,
		"1000003/1d":                        `weir: limit: 1000003/1d with a burst of 1000003 needs numbers beyond 2^53 to be exact; lower the burst to 104249,`,
		"1000003/1d burst 104250":           `weir: limit: 1000003/1d with a burst of 104250 needs numbers beyond 2^53`,
		"sliding_buckets 2199023255552/1d buckets 4095": `weir: limit: 2199023255552 units in each of 4095 sub-windows add up beyond 2^53`,
		"token_bucket 1/3650d burst 11":                 `weir: burst: 11 units at 1/3650d take more than 100 years to refill`,
		"leaky_bucket 999983/1d":                        `weir: limit: 999983/1d with a burst of 999983 needs numbers beyond 2^53`,
	} {
		l, err := weir.ParseLimit(in)
		var invalid *weir.InvalidError
		if !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("ParseLimit(%q) = %+v, %v; want an error that begins %q", in, l, err, want)
		}
	}
	if _, err := weir.ParseLimit("1000003/1d burst 104249"); err != nil {
		t.Errorf("the remedy that the error names does not help: %v", err)
	}
}

// What only a program can write.
func TestValidateErrors(t *testing.T) {
	for want, l := range map[string]weir.Limit{
		"name":      {Name: strings.Repeat("x", weir.MaxNameLen+1), N: 1, Period: time.Second},
		"algorithm": {Algorithm: 7, N: 1, Period: time.Second},
		"limit":     {N: -1, Period: time.Second},
		"limit ":    {N: math.MaxInt64, Period: time.Second},
		"period":    {N: 1},
		"period ":   {N: 1, Period: -time.Second},
		"period  ":  {N: 1, Period: math.MaxInt64},
		"burst":     {N: 1, Period: time.Second, Burst: -1},
		"burst ":    {N: 1, Period: time.Second, Burst: math.MaxInt64},
		"buckets":   {Algorithm: weir.SlidingBuckets, N: 1, Period: time.Second, Buckets: -1},
	} {
		err := l.Validate()
		var invalid *weir.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != strings.TrimSpace(want) {
			t.Errorf("%+v: %v; want an InvalidError of %q", l, err, want)
		}
	}
}

// The largest legal limits compute without leaving the exact range.
func TestLargestLimits(t *testing.T) {
	for _, s := range []string{
		"token_bucket 1125899906842624/1us burst 1125899906842624",
		"token_bucket 1/3650d burst 10",
		"token_bucket 315360000000000/3650d",
		"leaky_bucket 7/3650d shape",
		"fixed_window 1125899906842624/3650d count_denied",
		"sliding_window 1125899906842624/3650d count_denied",
		"sliding_buckets 2199023255551/3650d buckets 4095 count_denied",
	} {
		k := key{limit: weir.MustCompile(s)}
		now := weir.Micros(9_000_000_000_000_000) // the year 2255, just below 2^53
		if d := k.take(now, k.limit.Capacity()); !d.Allowed || d.Remaining != 0 {
			t.Errorf("%s: all at once: %+v", s, d)
		}
		d := k.take(now, k.limit.Capacity())
		if d.Allowed || d.RetryAfter <= 0 || d.RetryAfter > 10*weir.MaxPeriod {
			t.Errorf("%s: once more: %+v", s, d)
			continue
		}
		then := now + weir.Micros(d.RetryAfter.Microseconds())
		if k.peek(then-1, k.limit.Capacity()).Allowed || !k.peek(then, k.limit.Capacity()).Allowed {
			t.Errorf("%s: %v is not the first instant", s, d.RetryAfter)
		}
	}
}

func TestAlgorithmText(t *testing.T) {
	for _, a := range everyAlgorithm() {
		text, err := json.Marshal(a)
		var back weir.Algorithm
		if err != nil || json.Unmarshal(text, &back) != nil || back != a {
			t.Errorf("%v became %s and then %v, %v", a, text, back, err)
		}
	}
	if _, err := weir.ParseAlgorithm("in_flight"); err == nil || !strings.Contains(err.Error(), "in_flight limits no rate") {
		t.Errorf("in_flight as the algorithm of a rate: %v", err)
	}
	if len(weir.Algorithms()) != 6 {
		t.Errorf("%d algorithms, want 6", len(weir.Algorithms()))
	}
	if _, err := json.Marshal(weir.Algorithm(200)); err == nil {
		t.Error("an unknown algorithm was written")
	}
	if got := weir.Algorithm(200).String(); got != "Algorithm(200)" {
		t.Errorf("String() = %q", got)
	}
}

func TestMustCompilePanics(t *testing.T) {
	defer func() {
		if err, _ := recover().(error); err == nil || !strings.Contains(err.Error(), "brust") {
			t.Errorf("a bad limit panicked with %v", err)
		}
	}()
	weir.MustCompile("5/1m brust 7")
}

// What a compiled limit is called is what the limit is called.
func TestCompiledPolicy(t *testing.T) {
	for want, limit := range map[string]weir.Limit{
		"100/1m":         weir.PerMinute(100),
		"5/1s":           {N: 5, Period: time.Second, Burst: 20},
		"concurrency 20": {Algorithm: weir.InFlight, N: 20, Period: time.Minute},
	} {
		c, err := limit.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if c.Policy() != want || limit.Policy() != want {
			t.Errorf("%s and %s, want %s", c.Policy(), limit.Policy(), want)
		}
	}
}

// Kind tells apart what cannot share a state, and only that.
func TestKind(t *testing.T) {
	same := func(a, b string) bool { return weir.MustCompile(a).Kind() == weir.MustCompile(b).Kind() }
	for _, pair := range [][2]string{
		{"100/1m", "200/1m burst 7"},
		{"leaky_bucket 1/1s", "leaky_bucket 1/1s shape"},
		{"fixed_window 1/1s", "fixed_window 2/1s count_denied"},
		{"sliding_buckets 1/1s", "sliding_buckets 1/1s buckets 60"},
	} {
		if !same(pair[0], pair[1]) {
			t.Errorf("%s and %s are of different kinds", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{
		{"100/1m", "100/61s"},
		{"token_bucket 1/1s", "leaky_bucket 1/1s"},
		{"sliding_buckets 1/1s", "sliding_buckets 1/1s buckets 59"},
		{"sliding_buckets 1/1s buckets 8", "sliding_log 1/1s"},
	} {
		if same(pair[0], pair[1]) {
			t.Errorf("%s and %s are of the same kind", pair[0], pair[1])
		}
	}
}

func TestExactRange(t *testing.T) {
	for limit, want := range map[string]string{
		"3/1048576us burst 8589934592": "lower the burst to 8589934591,", // 2^53 / 2^20
		"3/1048576us burst 8589934591": "",
		"3/6361us burst 1416003655832": "lower the burst to 1416003655831,", // 6361 divides 2^53 - 1
		"3/6361us burst 1416003655831": "",
	} {
		if _, err := weir.ParseLimit(limit); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("ParseLimit(%q): %v, want %q", limit, err, want)
		}
	}
}

// A snapshot knows a key by its kind: this must not change.
func TestKindIsStable(t *testing.T) {
	for limit, want := range map[string]uint64{
		"token_bucket 5/1m":              60_000_000 << 15,
		"sliding_buckets 5/1m buckets 6": 60_000_000<<15 | 6<<3 | 5,
		"sliding_buckets 5/7us":          7<<15 | 7<<3 | 5,
	} {
		c := weir.MustCompile(limit)
		if got := c.Kind(); got != want {
			t.Errorf("%s: kind %d, want %d", limit, got, want)
		}
	}
	named, err := weir.Limit{Name: "login", N: 5, Period: time.Minute}.Compile()
	if want := uint64(0x3c75c7f220f29d2); err != nil || named.Kind() != want {
		t.Errorf("a named limit: kind %#x, %v; want %#x", named.Kind(), err, want)
	}
}
