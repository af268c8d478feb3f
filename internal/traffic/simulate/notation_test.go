package simulate

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir"
)

func TestParseTraffic(t *testing.T) {
	limit := mustLimit(t, "4/8us")
	for text, want := range map[string][]weir.Micros{
		"3@10us":                {10, 10, 10},
		"3@0":                   {0, 0, 0},
		"4@10us..12us":          {10, 10, 11, 11},
		"3/1us@0s..2us":         {0, 0, 0, 1, 1, 1},
		"1/10us@5us..26us":      {5, 15, 25},
		" 1@9us , 1@3us":        {3, 9},
		"2/1ms@0s..1ms,1@700us": {0, 500, 700},
		"boundary":              {6, 6, 7, 7, 8, 8, 9, 9},
		"burst":                 slices.Repeat([]weir.Micros{0, 12, 24}, 8),
	} {
		traffic, err := ParseTraffic(text, limit, 1, MaxRequests)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var got []weir.Micros
		for _, r := range traffic.Requests {
			got = append(got, r.At)
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestParseTrafficErrors(t *testing.T) {
	limit := mustLimit(t, "100/1m")
	for text, want := range map[string]string{
		"":                      "the term is empty",
		"50@10s,":               "the term is empty",
		"steedy":                `did you mean "steady"?`,
		"wednesday":             "poisson",
		"50":                    "not traffic",
		"50@":                   "empty duration",
		"50@ten":                "bad duration",
		"50@-1s":                "bad duration",
		"x@10s":                 "not a whole number of requests",
		"-5@10s":                "not a whole number of requests",
		"+5@10s":                "not a whole number of requests",
		"0@10s":                 "not a whole number of requests",
		"1e3@10s":               "not a whole number of requests",
		"3000000@0s":            "more than 2000000 requests",
		"3000000/1us@0s..1h":    "more than 2000000 requests",
		"9999999999@0s":         "too many",
		"99999999999999999@0s":  "too many",
		"99999999999999999999@": "empty duration",
		"3/1s@5s":               "a start and an end",
		"3/0s@0s..5s":           "not a valid period",
		"3/x@0s..5s":            "bad duration",
		"3/1s@5s..5s":           "not after",
		"3/1s@5s..1s":           "not after",
		"1@100000d":             "longer than 100 years",
		"1/1d@99999d..100000d":  "longer than 100 years",
	} {
		_, err := ParseTraffic(text, limit, 1, MaxRequests)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	huge := weir.Limit{Algorithm: weir.FixedWindow, N: weir.MaxUnits, Period: weir.MaxPeriod}
	for _, p := range Patterns() {
		if _, err := ParseTraffic(p.Name, huge, 1, MaxRequests); err == nil || !strings.Contains(err.Error(), "more than 2000000") {
			t.Errorf("%s of a huge limit: %v", p.Name, err)
		}
	}
}

func FuzzParseTraffic(f *testing.F) {
	for _, p := range Patterns() {
		f.Add(p.Name)
	}
	for _, text := range []string{"50@10s", "50@10s..20s", "3/1s@0s..1m,9@1.5s", "1@@..", "1/1us@0..w"} {
		f.Add(text)
	}
	limit := mustLimit(f, "10/1m")
	lanes, _ := AllLanes(limit)
	f.Fuzz(func(t *testing.T, text string) {
		traffic, err := ParseTraffic(text, limit, 1, MaxRequests)
		if err != nil {
			return
		}
		if n := len(traffic.Requests); n == 0 || n > MaxRequests {
			t.Fatalf("%d requests", n)
		}
		if !slices.IsSortedFunc(traffic.Requests, byTime) {
			t.Fatal("out of order")
		}
		if len(traffic.Requests) > 1000 {
			return // right, but slow
		}
		var sink strings.Builder
		r := Run(limit, lanes, traffic, 60)
		if err := r.WriteText(&sink, Look{Width: 80}); err != nil {
			t.Fatal(err)
		}
		for _, l := range r.Lanes {
			if l.Worst > l.Bound || l.Allowed+l.Denied != r.Offered {
				t.Fatalf("%+v", l.tally)
			}
		}
	})
}

// Who has less room than others is denied before it is full.
func TestParseTrafficUpTo(t *testing.T) {
	limit := mustLimit(t, "100/1m")
	for text, requests := range map[string]int{"boundary": 200, "150@0s,50@1s": 200, "10/1s@0s..20s": 200} {
		if traffic, err := ParseTraffic(text, limit, 1, requests); err != nil || len(traffic.Requests) != requests {
			t.Errorf("%q: %d requests, %v", text, len(traffic.Requests), err)
		}
		if _, err := ParseTraffic(text, limit, 1, requests-1); err == nil || !strings.Contains(err.Error(), "more than 199 requests") {
			t.Errorf("%q, one too many: %v", text, err)
		}
	}
	if _, err := ParseTraffic("3000000@0s", limit, 1, 1<<30); err == nil || !strings.Contains(err.Error(), "more than 2000000 requests") {
		t.Errorf("a bound beyond the package's own: %v", err)
	}
}
