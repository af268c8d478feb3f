package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/stats/alert"
	"github.com/weirhq/weir/stats/frame"
)

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		grouped(0): "0", grouped(-1234): "-1,234", grouped(999): "999", grouped(1234567): "1,234,567",
		perSecond(0): "0/s", perSecond(0.04): "0.0/s", perSecond(9.94): "9.9/s", perSecond(9.96): "10/s", perSecond(12345.6): "12,346/s", perSecond(1e300): "?",
		percent(0): "0.0 %", percent(0.0001): "< 0.1 %", percent(0.123): "12.3 %", percent(1): "100.0 %",
		micros(0.5): "0.5 µs", micros(9.96): "10 µs", micros(999.6): "1.0 ms", micros(12_000): "12 ms", micros(2.5e6): "2.5 s", micros(-1): "?",
		cell("abc", 5): "abc  ", cell("abcdef", 5): "abcd…", cell("漢字漢字", 5): "漢字…", cell("漢字漢字", 6): "漢字… ", cell("a\x1b[2Jb\n", 9): "a\uFFFD[2Jb\uFFFD  ",
		cell("", 0): "", cell("abc", 1): "…",
		unicodePencil.spark([]float64{-1, 0, 1, 4, 8}, 10):       " ▁▂▅█",
		unicodePencil.spark([]float64{-1, -1, 0, 1, 4, 8, 0}, 3): " ▂█",
		unicodePencil.spark([]float64{0, 0}, 2):                  "▁▁",
		unicodePencil.spark(nil, 2):                              "",
		asciiPencil.share(0.5, 4):                                "##..",
		asciiPencil.share(0.001, 4):                              "#...",
		asciiPencil.share(7, 4):                                  "####",
		asciiPencil.share(0, 4):                                  "....",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	// Marks that take no room do not pile up.
	if marked := cell(strings.Repeat("e"+strings.Repeat("\u0301", 30), 50), 20); textWidth(marked) != 20 || len([]rune(marked)) > 70 {
		t.Errorf("%d columns, %q", textWidth(marked), marked)
	}
}

// drawnView is one in which a server says anything.
func drawnView(t *rapid.T) *view {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "api", "\x1b[2J\x1b[H", "漢字漢字漢字漢字漢字漢字漢字", "a\r\nb\tc", "\u202e", strings.Repeat("x", 300)}))
	number := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64())
	counts := rapid.Custom(func(t *rapid.T) frame.Counts {
		return frame.Counts{Allowed: number.Draw(t, "allowed"), Denied: number.Draw(t, "denied"), DegradedDenied: number.Draw(t, "failed"), ShadowDenied: number.Draw(t, "shadow")}
	})
	latency := rapid.Custom(func(t *rapid.T) httpapi.StatsLatency {
		return httpapi.StatsLatency{P50: rapid.Float64().Draw(t, "p50"), P99: rapid.Float64().Draw(t, "p99")}
	})
	top := rapid.Custom(func(t *rapid.T) httpapi.TopAnswer {
		a := httpapi.TopAnswer{Sampling: number.Draw(t, "sampling")}
		for range rapid.IntRange(0, 25).Draw(t, "keys") {
			a.Entries = append(a.Entries, httpapi.TopEntry{Key: text.Draw(t, "key"), Count: number.Draw(t, "count"), Error: number.Draw(t, "error")})
		}
		return a
	})
	v := &view{server: text.Draw(t, "server"), trouble: text.Draw(t, "trouble"), stale: text.Draw(t, "stale"), news: news{denied: top.Draw(t, "denied"), allowed: top.Draw(t, "allowed")}}
	v.minute.Latency, v.minute.Requests = latency.Draw(t, "latency"), number.Draw(t, "requests")
	if rapid.Bool().Draw(t, "upstream") {
		v.minute.Upstream = &httpapi.StatsUpstream{Errors: 1, ErrorShare: rapid.Float64().Draw(t, "share"), Latency: latency.Draw(t, "latency")}
	}
	for range rapid.IntRange(0, 6).Draw(t, "warnings") {
		v.warnings.Warnings = append(v.warnings.Warnings, httpapi.StatsWarning{
			At: float64(v.minute.To), Key: text.Draw(t, "warned"), Rule: text.Draw(t, "warning rule"), Threshold: rapid.Int64Range(1, 100).Draw(t, "threshold"), Used: number.Draw(t, "used"), Limit: number.Draw(t, "of"),
		})
	}
	for range rapid.IntRange(0, 6).Draw(t, "alerts") {
		v.alerts.Active = append(v.alerts.Active, alert.Alert{Kind: alert.Kind(text.Draw(t, "kind")), Summary: text.Draw(t, "summary"), Silenced: rapid.Bool().Draw(t, "silenced")})
	}
	for range rapid.IntRange(0, 5).Draw(t, "events") {
		e := httpapi.SummaryAnswer{From: rapid.OneOf(rapid.Int64Range(1000, 1100), rapid.Int64()).Draw(t, "from"), Local: rapid.Bool().Draw(t, "local")}
		e.Counts = counts.Draw(t, "counts")
		for range rapid.IntRange(0, 30).Draw(t, "rules") {
			r := httpapi.StatsRule{Rule: text.Draw(t, "rule")}
			r.Counts = counts.Draw(t, "counts")
			if rapid.Bool().Draw(t, "in flight") {
				held := latency.Draw(t, "held")
				r.InFlight = &httpapi.StatsInFlight{Mean: rapid.Float64().Draw(t, "mean"), Highest: number.Draw(t, "highest"), Held: &held}
			}
			e.Rules = append(e.Rules, r)
		}
		v.minute.Rules = e.Rules
		for range rapid.IntRange(0, 5).Draw(t, "adaptive") {
			e.Adaptive = append(e.Adaptive, httpapi.StatsAdaptive{Upstream: text.Draw(t, "upstream"), Limit: rapid.Int().Draw(t, "limit"), InFlight: rapid.Int().Draw(t, "in flight"), Denied: rapid.Uint64().Draw(t, "denied")})
		}
		for range rapid.IntRange(0, 6).Draw(t, "priorities") {
			p := httpapi.StatsPriority{Priority: text.Draw(t, "priority"), Requests: number.Draw(t, "requests"), Counts: counts.Draw(t, "counts")}
			e.Priorities = append(e.Priorities, p)
		}
		if rapid.Bool().Draw(t, "protect") {
			e.Protect = &httpapi.StatsProtect{CPU: rapid.Float64().Draw(t, "cpu"), CPULimit: rapid.Float64().Draw(t, "of"), MemoryLimit: 1, Shed: map[string]uint64{"low": rapid.Uint64().Draw(t, "shed")}}
		}
		v.minute.Priorities = e.Priorities
		v.second, v.follows = e, true
		v.past.follow(&e)
	}
	return v
}

var sgr = regexp.MustCompile(`\x1b\[[0-9;]+m`)

// Whatever a server says, a screen fits, and a terminal is told of nothing but colours.
func TestScreenFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawnView(t)
		k := look{
			width: rapid.IntRange(1, 200).Draw(t, "width"), height: rapid.IntRange(1, 70).Draw(t, "height"),
			live: true, coloured: rapid.Bool().Draw(t, "coloured"), pencil: unicodePencil,
		}
		lines := v.lines(k, time.Unix(0, 0))
		if len(lines) != k.height {
			t.Fatalf("%d lines on a screen of %d", len(lines), k.height)
		}
		for _, text := range lines {
			seen := text
			if k.coloured {
				seen = sgr.ReplaceAllString(text, "")
			}
			if strings.ContainsFunc(seen, unicode.IsControl) {
				t.Fatalf("a terminal would obey %q", text)
			}
			if n := textWidth(seen); n > k.width {
				t.Fatalf("%d columns on a screen of %d: %q", n, k.width, text)
			}
		}
	})
}

// A screen of the usual size has all parts, and a larger one more of them.
func TestScreenParts(t *testing.T) {
	v := &view{server: "http://127.0.0.1:8080", follows: true}
	e := httpapi.SummaryAnswer{From: 1000, Store: httpapi.StatsStore{UnavailableSince: new(int64), Error: "connection refused"}, Local: true}
	e.Counts = frame.Counts{Allowed: 1200, Denied: 300, ShadowDenied: 7, DegradedAllowed: 5, DegradedDenied: 3, Blocked: 2}
	for i := range 40 {
		r := httpapi.StatsRule{Rule: fmt.Sprintf("rule-%02d", i)}
		r.Counts = frame.Counts{Allowed: int64(100 - i), Denied: 1}
		e.Rules = append(e.Rules, r)
		v.denied.Entries = append(v.denied.Entries, httpapi.TopEntry{Key: fmt.Sprintf("ip:10.0.0.%d", i), Count: int64(5000 - i), Error: int64(i % 2)})
	}
	v.second, v.allowed = e, v.denied
	v.past.follow(&e)
	v.minute = e
	v.minute.Requests = 1517
	v.minute.Upstream = &httpapi.StatsUpstream{Errors: 1, ErrorShare: 0.01}
	for i := range 5 {
		v.alerts.Active = append(v.alerts.Active, alert.Alert{Kind: alert.Shadow, Summary: fmt.Sprint("number ", i), Silenced: i == 1})
		v.warnings.Warnings = append(v.warnings.Warnings, httpapi.StatsWarning{At: float64(v.minute.To) - float64(i)*150, Key: "user:alice", Rule: "plan", Threshold: 95, Used: 9500 + int64(i), Limit: 10000})
	}
	for _, size := range []struct {
		width, height, rules, keys int
		warned                     []string
	}{
		{80, 24, 1, 0, []string{"~ 95 %       user:alice has used 9,500 of 10,000 of plan (at ", "~ and 4 more clients near their limits"}},
		{80, 60, 20, 13, []string{"user:alice has used 9,502 of 10,000 of plan (at ", "~ and 2 more clients near their limits"}},
		{60, 60, 19, 6, []string{"~ 95 %       user:alice has used 9,500 of 10", "~ and 2 more clients near their limits"}},
		{50, 20, 0, 0, []string{"~ 5 clients near their limits"}},
	} {
		k := look{width: size.width, height: size.height, live: true, pencil: unicodePencil}
		screen := strings.Join(v.lines(k, time.Unix(0, 0)), "\n")
		for _, part := range append(size.warned,
			"store unavailable since ", "figures of this instance only; connection refused", "! shadow     number 0 (since ", "number 1 (since ", ", silenced)", "! and 2 more; weir alerts lists them",
			"requests         1,517/s", "shadow             7.0/s", "degraded           5.0/s", "failed             3.0/s", "blocked            2.0/s",
			"denied share      19.8 %", "decisions     p50 0.0 µs", "upstream      p50 0.0 µs",
		) {
			if !strings.Contains(screen, part) {
				t.Errorf("%dx%d: there is no %q in\n%s", size.width, size.height, part, screen)
			}
		}
		rules := strings.Count(screen, "rule-")
		keys := strings.Count(screen, "ip:10")
		if rules != size.rules || keys != 2*size.keys {
			t.Errorf("%dx%d: %d rules and %d keys\n%s", size.width, size.height, rules, keys, screen)
		}
	}
	// Without a bound there are enough.
	screen := strings.Join(v.lines(look{width: 80, pencil: asciiPencil}, time.Unix(0, 0)), "\n")
	if rules, keys := strings.Count(screen, "rule-"), strings.Count(screen, "ip:10"); rules != 20 || keys != 20 || !strings.Contains(screen, "~4,999") {
		t.Errorf("%d rules and %d keys\n%s", rules, keys, screen)
	}
	v.trouble, v.stale = "", "rankings are old"
	foot := func() string {
		lines := v.lines(look{width: 80, height: 24, live: true, pencil: asciiPencil}, time.Unix(0, 0))
		return lines[len(lines)-1]
	}
	if foot() != "rankings are old" {
		t.Errorf("the last line is %q", foot())
	}
	if v.trouble = "no news"; foot() != "no news" {
		t.Errorf("the last line is %q", foot())
	}
}

// Upstreams that are nearest to their limits come first, and rules with the most in flight.
func TestScreenInFlight(t *testing.T) {
	v := &view{follows: true}
	rule := func(name string, mean float64, highest int64) httpapi.StatsRule {
		return httpapi.StatsRule{Rule: name, InFlight: &httpapi.StatsInFlight{Mean: mean, Highest: highest, Held: &httpapi.StatsLatency{P50: 2500, P99: 1.5e6}}}
	}
	v.minute.Rules = []httpapi.StatsRule{{Rule: "rate"}, rule("few", 0.25, 1), rule("none", 0, 9), rule("many", 1234.5, 500), rule("some", 7, 3)}
	v.minute.Rules[4].InFlight.Held = nil
	v.second.Rules = []httpapi.StatsRule{rule("many", 1500, 2), rule("some", 3.4, 2)}
	for i, free := range []int{9, 0, 5, 2} {
		v.second.Adaptive = append(v.second.Adaptive, httpapi.StatsAdaptive{Upstream: fmt.Sprint("http://", i), Limit: 1000, InFlight: 1000 - free, Denied: 1234})
	}
	var got []string
	for _, text := range v.lines(look{width: 100, pencil: asciiPencil}, time.Unix(0, 0)) {
		if strings.HasPrefix(text, "adaptive") || strings.HasPrefix(text, "in flight") {
			got = append(got, text)
		}
	}
	want := []string{
		"adaptive    1,000 of 1,000   denied 1,234   http://1",
		"adaptive    998 of 1,000   denied 1,234   http://3",
		"adaptive    995 of 1,000   denied 1,234   http://2",
		"in flight          1,500   most 500   p50 2.5 ms   p99 1.5 s   many",
		"in flight            3.4   most 3   some",
		"in flight              0   most 1   p50 2.5 ms   p99 1.5 s   few",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Each priority has a line if not all requests have the same; and so does a process that sheds.
func TestScreenPriorities(t *testing.T) {
	v := &view{follows: true}
	v.minute.Window = 60
	v.minute.Priorities = []httpapi.StatsPriority{
		{Priority: "critical", Requests: 600, Counts: frame.Counts{Allowed: 600}},
		{Priority: "low", Requests: 1200, Counts: frame.Counts{Allowed: 300, Denied: 900}},
	}
	v.second.Priorities = []httpapi.StatsPriority{{Priority: "low", Requests: 17}}
	v.second.Protect = &httpapi.StatsProtect{CPU: 0.913, CPULimit: 0.85, Shed: map[string]uint64{"low": 1234, "normal": 5}}
	var got []string
	for _, text := range v.lines(look{width: 100, pencil: asciiPencil}, time.Unix(0, 0)) {
		if strings.HasPrefix(text, "critical") || strings.HasPrefix(text, "low") || strings.HasPrefix(text, "protect") {
			got = append(got, text)
		}
	}
	want := []string{
		"critical             0/s          10/s   denied 0.0 %",
		"low                 17/s          20/s   denied 75.0 %",
		"protect     cpu 91.3 % of 85.0 %   shed low 1,234 normal 5",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestHistory(t *testing.T) {
	var h history
	if _, ok := h.latest(); ok {
		t.Error("something is known from the beginning")
	}
	point := func(at, allowed int64) httpapi.StatsPoint {
		p := httpapi.StatsPoint{T: at}
		p.Allowed = allowed
		return p
	}
	h.recall(&httpapi.SeriesAnswer{Step: 1, Points: []httpapi.StatsPoint{point(1000, 1), point(1001, 2)}}, "")
	h.recall(&httpapi.SeriesAnswer{Step: 1, Points: []httpapi.StatsPoint{point(1001, 5)}}, "api")
	h.recall(&httpapi.SeriesAnswer{Step: 60, Points: []httpapi.StatsPoint{point(1002, 99)}}, "") // other steps are of no use
	event := func(at, allowed int64, rules ...string) {
		e := httpapi.SummaryAnswer{From: at}
		e.Allowed = allowed
		for _, name := range rules {
			r := httpapi.StatsRule{Rule: name}
			r.Allowed = allowed
			e.Rules = append(e.Rules, r)
		}
		h.follow(&e)
	}
	event(1003, 7, "login", "api")
	event(1003, 8, "login") // the same second again replaces it
	event(943, 50)          // too old
	if sum, known := h.sum(); sum.Allowed != 1+2+8 || known != 3 {
		t.Errorf("the sum is %+v of %d seconds", sum, known)
	}
	if rules := h.rules(); len(rules) != 2 || rules[0] != (ruleShown{"login", frame.Counts{Allowed: 8}}) || rules[1] != (ruleShown{"api", frame.Counts{Allowed: 5}}) {
		t.Errorf("the rules are %+v", rules)
	}
	values := h.values(func(s *second) float64 { return float64(s.all.Allowed) })
	if got := fmt.Sprint(values[55:]); got != "[-1 1 2 -1 8]" {
		t.Errorf("the values are %v", got)
	}
	if last, ok := h.latest(); !ok || last.at != 1003 {
		t.Errorf("the latest is %+v", last)
	}
	event(1003+historySeconds-1, 3) // all but the last are over
	if sum, known := h.sum(); sum.Allowed != 8+3 || known != 2 {
		t.Errorf("the sum is %+v of %d seconds", sum, known)
	}
	// Names from clients cannot fill the memory.
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprint(i))
	}
	event(2000, 1, names...)
	if n := len(h.rules()); n != maxListedRules {
		t.Errorf("%d rules are kept", n)
	}
}
