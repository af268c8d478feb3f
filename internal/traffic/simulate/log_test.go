package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParseLog(t *testing.T) {
	const second = 1_000_000
	limit := mustLimit(t, "10/1m")
	for text, want := range map[string][]Request{
		"1.5s\n2s\n": {{At: 1.5 * second, Key: "client", Cost: 1}, {At: 2 * second, Key: "client", Cost: 1}},
		"# a comment\n\n 10:30:15.25 alice 3 \r\n":       {{At: 37815.25 * second, Key: "alice", Cost: 3}},
		"2026-11-15T00:00:02Z bob\n2026-11-15T00:00:01Z": {{At: second, Key: "client", Cost: 1}, {At: 2 * second, Key: "bob", Cost: 1}},
		"2026-11-15T01:00:00+01:00":                      {{At: 0, Key: "client", Cost: 1}},
		// An earlier day comes later: all times are from its midnight on.
		"2026-11-15T00:00:01Z\n2026-11-14T23:59:59Z": {{At: day - second, Key: "client", Cost: 1}, {At: day + second, Key: "client", Cost: 1}},
		"1794700800.5 a":         {{At: second / 2, Key: "a", Cost: 1}},
		"1794700800.0000019 a 2": {{At: 1, Key: "a", Cost: 2}},
	} {
		got, err := ParseLog("log", text, limit)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if !slices.Equal(got.Requests, want) {
			t.Errorf("%q: %+v, want %+v", text, got.Requests, want)
		}
	}
}

func TestParseLogErrors(t *testing.T) {
	limit := mustLimit(t, "10/1m")
	for text, want := range map[string]string{
		"":                               "log: no requests",
		"# nothing":                      "no requests",
		"1s\nyesterday":                  `log:2: "yesterday" is not a time; write a time`,
		"1s\n10:30:15":                   "log:2: the time is a time of day, but the lines before have a length of time",
		"1s a 0":                         `"0" is not a cost`,
		"1s a -1":                        `"-1" is not a cost`,
		"1s a x":                         `"x" is not a cost`,
		"1s a 1 b":                       `"b" is unexpected`,
		"100000d":                        "longer than 100 years",
		"1s " + strings.Repeat("x", 201): "more than 200 bytes",
		"1969-12-31T23:59:59Z":           "is not a time",
		"1s a 99999999999999999999":      "is not a cost",
	} {
		_, err := ParseLog("log", text, limit)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	if _, err := ParseLog("log", strings.Repeat("\n", MaxLog+1), limit); err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Errorf("a log that is too long: %v", err)
	}
	var crowd strings.Builder
	for i := range 300_000 {
		fmt.Fprintf(&crowd, "1s client%d\n", i)
	}
	if _, err := ParseLog("log", crowd.String(), limit); err == nil || !strings.Contains(err.Error(), "use fewer clients") {
		t.Errorf("too many clients: %v", err)
	}
}

// A log of a traffic is that traffic.
func TestParseLogIsTheTraffic(t *testing.T) {
	limit := mustLimit(t, "30/1m")
	for _, p := range Patterns() {
		traffic := mustTraffic(t, p.Name, limit)
		var b strings.Builder
		for _, r := range traffic.Requests {
			b.WriteString(clock(r.At) + " " + r.Key + "\n")
		}
		got, err := ParseLog("log", b.String(), limit)
		if err != nil || !slices.Equal(got.Requests, traffic.Requests) {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}

func FuzzParseLog(f *testing.F) {
	for _, text := range []string{"1.5s", "10:30:15.25 alice 3", "2026-11-15T00:00:02Z bob\n2026-11-14T00:00:01Z", "1794700800.5 a", "# x\n0s a 1"} {
		f.Add(text)
	}
	limit := mustLimit(f, "10/1m")
	f.Fuzz(func(t *testing.T, text string) {
		traffic, err := ParseLog("log", text, limit)
		if err != nil {
			return
		}
		if !slices.IsSortedFunc(traffic.Requests, byTime) || traffic.Requests[0].At < 0 {
			t.Fatalf("out of order: %+v", traffic.Requests)
		}
	})
}
