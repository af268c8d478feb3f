package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/alert"
	"github.com/weirhq/weir/internal/server/httpapi"
	"github.com/weirhq/weir/stats"
	"github.com/weirhq/weir/stats/archive"
)

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		grouped(0): "0", grouped(-1234): "-1,234", grouped(999): "999", grouped(1234567): "1,234,567",
		decimal(0): "0", decimal(0.04): "0.0", decimal(9.94): "9.9", decimal(9.96): "10", decimal(12345.6): "12,346", decimal(1e300): "?",
		percent(0): "0.0 %", percent(0.0001): "< 0.1 %", percent(0.123): "12.3 %", percent(1): "100.0 %",
		micros(0.5): "0.5 µs", micros(9.96): "10 µs", micros(999.6): "1.0 ms", micros(12_000): "12 ms", micros(2.5e6): "2.5 s", micros(-1): "?",
		column("a\x1b[2Jb\n"): "a\uFFFD[2Jb\uFFFD", column(strings.Repeat("e\u0301", 50)): strings.Repeat("e\u0301", 29) + "e…",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// somewhere is a client of a server that nobody asks.
func somewhere(address string) *client { return &client{base: &url.URL{Scheme: "http", Host: address}} }

// drawnFigures are those of a server that says anything.
func drawnFigures(t *rapid.T) *figures {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "api", "\x1b[2J\x1b[H", "漢字漢字漢字漢字漢字漢字漢字", "a\r\nb\tc", "\u202e", strings.Repeat("x", 300)}))
	number := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64())
	counts := rapid.Custom(func(t *rapid.T) archive.Counts {
		return archive.Counts{Allowed: number.Draw(t, "allowed"), Denied: number.Draw(t, "denied"), DegradedDenied: number.Draw(t, "failed"), ShadowDenied: number.Draw(t, "shadow")}
	})
	latency := rapid.Custom(func(t *rapid.T) stats.Percentiles {
		return stats.Percentiles{P50: time.Duration(number.Draw(t, "p50")), P99: time.Duration(number.Draw(t, "p99"))}
	})
	top := rapid.Custom(func(t *rapid.T) httpapi.TopAnswer {
		a := httpapi.TopAnswer{Sampling: number.Draw(t, "sampling")}
		for range rapid.IntRange(0, 25).Draw(t, "keys") {
			a.Entries = append(a.Entries, httpapi.TopEntry{Key: text.Draw(t, "key"), Count: number.Draw(t, "count"), Error: number.Draw(t, "error")})
		}
		return a
	})
	summary := rapid.Custom(func(t *rapid.T) httpapi.SummaryAnswer {
		s := httpapi.SummaryAnswer{Window: number.Draw(t, "window"), To: number.Draw(t, "to"), Local: rapid.Bool().Draw(t, "local"), Latency: latency.Draw(t, "latency")}
		s.Requests, s.Counts = number.Draw(t, "requests"), counts.Draw(t, "counts")
		s.Store = httpapi.StatsStore{Up: rapid.Bool().Draw(t, "up"), Error: text.Draw(t, "error")}
		if rapid.Bool().Draw(t, "not loaded") {
			s.NotLoaded = &httpapi.NotLoaded{Since: number.Draw(t, "since"), Error: text.Draw(t, "why")}
		}
		for range rapid.IntRange(0, 30).Draw(t, "rules") {
			r := stats.RuleSummary{Rule: text.Draw(t, "rule")}
			r.Counts = counts.Draw(t, "counts")
			if rapid.Bool().Draw(t, "in flight") {
				r.InFlight = &stats.InFlight{Mean: rapid.Float64().Draw(t, "mean"), Highest: number.Draw(t, "highest"), Held: latency.Draw(t, "held")}
			}
			s.Rules = append(s.Rules, r)
		}
		for range rapid.IntRange(0, 5).Draw(t, "adaptive") {
			s.Adaptive = append(s.Adaptive, engine.UpstreamLimit{Upstream: text.Draw(t, "upstream"), AdaptiveLimit: engine.AdaptiveLimit{Limit: rapid.Int().Draw(t, "limit"), InFlight: rapid.Int().Draw(t, "in flight"), Denied: rapid.Uint64().Draw(t, "denied")}})
		}
		for range rapid.IntRange(0, 5).Draw(t, "reserved") {
			s.Reserved = append(s.Reserved, engine.Reserved{Rule: text.Draw(t, "reserving"), Model: text.Draw(t, "model"), Currency: text.Draw(t, "currency"), Requests: number.Draw(t, "open"), Units: number.Draw(t, "units"), Excess: number.Draw(t, "excess")})
		}
		for range rapid.IntRange(0, 6).Draw(t, "priorities") {
			s.Priorities = append(s.Priorities, stats.PrioritySummary{Priority: text.Draw(t, "priority"), Requests: number.Draw(t, "requests"), Counts: counts.Draw(t, "counts")})
		}
		if rapid.Bool().Draw(t, "protect") {
			s.Protect = &httpapi.StatsProtect{CPU: rapid.Float64().Draw(t, "cpu"), CPULimit: rapid.Float64().Draw(t, "of"), MemoryLimit: 1, Shed: map[string]uint64{"low": rapid.Uint64().Draw(t, "shed")}}
		}
		if rapid.Bool().Draw(t, "upstream") {
			s.Upstream = &stats.Upstream{Errors: 1, ErrorShare: rapid.Float64().Draw(t, "share"), Latency: latency.Draw(t, "latency")}
		}
		return s
	})
	n := &figures{minute: summary.Draw(t, "minute"), recent: summary.Draw(t, "recent"), denied: top.Draw(t, "denied"), allowed: top.Draw(t, "allowed")}
	for range rapid.IntRange(0, 6).Draw(t, "warnings") {
		n.warnings.Warnings = append(n.warnings.Warnings, archive.Warning{
			At: archive.Instant(n.minute.To * 1e6), Key: text.Draw(t, "warned"), Rule: text.Draw(t, "warning rule"), Threshold: rapid.Int64Range(1, 100).Draw(t, "threshold"), Used: number.Draw(t, "used"), Limit: number.Draw(t, "of"),
		})
	}
	for range rapid.IntRange(0, 6).Draw(t, "alerts") {
		n.alerts.Active = append(n.alerts.Active, alert.Alert{Kind: alert.Kind(text.Draw(t, "kind")), Summary: text.Draw(t, "summary"), Silenced: rapid.Bool().Draw(t, "silenced")})
	}
	return n
}

// Whatever a server says, a page fits, and a terminal is told of nothing but lines.
func TestPageFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 70).Draw(t, "rows")
		lines := strings.Split(drawnFigures(t).page(somewhere("x"), rows), "\n")
		if len(lines) > rows+1 || lines[len(lines)-1] != "" {
			t.Fatalf("%d lines, the last of them %q, in %d rows", len(lines), lines[len(lines)-1], rows)
		}
		for _, text := range lines {
			if strings.ContainsFunc(text, unicode.IsControl) {
				t.Fatalf("a terminal would obey %q", text)
			}
		}
	})
}

// busyFigures have something in every part.
func busyFigures() *figures {
	n := &figures{}
	m := &n.minute
	m.Window, m.Requests = 60, 1517*60
	m.Store, m.Local = httpapi.StatsStore{UnavailableSince: new(int64), Error: "connection refused"}, true
	m.Counts = archive.Counts{Allowed: 72000, Denied: 18000, ShadowDenied: 420, DegradedAllowed: 300, DegradedDenied: 180, Blocked: 120}
	m.Upstream = &stats.Upstream{Errors: 1, ErrorShare: 0.01}
	m.Priorities = []stats.PrioritySummary{
		{Priority: "critical", Requests: 600, Counts: archive.Counts{Allowed: 600}},
		{Priority: "low", Requests: 1200, Counts: archive.Counts{Allowed: 300, Denied: 900}},
	}
	m.Protect = &httpapi.StatsProtect{CPU: 0.913, CPULimit: 0.85, Shed: map[string]uint64{"low": 1234, "normal": 5}}
	m.Reserved = []engine.Reserved{{Rule: "spend", Model: "gpt-4o", Requests: 1, Units: 12_500_000, Excess: 3000, Used: 3_500_000, Refunded: 26_500_000, Currency: "usd"}, {Rule: "tokens", Requests: 7, Units: 900}}
	for i, free := range []int{9, 0, 5, 2} {
		m.Adaptive = append(m.Adaptive, engine.UpstreamLimit{Upstream: fmt.Sprint("http://", i), AdaptiveLimit: engine.AdaptiveLimit{Limit: 1000, InFlight: 1000 - free, Denied: 1234}})
	}
	for i := range 40 {
		r := stats.RuleSummary{Rule: fmt.Sprintf("rule-%02d", i)}
		r.Counts = archive.Counts{Allowed: int64(6000 - i), Denied: 60, DegradedAllowed: 120}
		m.Rules = append(m.Rules, r)
		n.denied.Entries = append(n.denied.Entries, httpapi.TopEntry{Key: fmt.Sprintf("ip:10.0.0.%d", i), Count: int64(5000 - i), Error: int64(i % 2)})
	}
	for i, mean := range []float64{0.25, 0, 1234.5, 7} {
		m.Rules[10+i].InFlight = &stats.InFlight{Mean: mean, Highest: int64(100 + i), Held: stats.Percentiles{P50: 2500 * time.Microsecond, P99: 1500 * time.Millisecond}}
	}
	m.Rules[13].InFlight.Held = stats.Percentiles{}
	n.recent.Window, n.recent.Counts = 5, archive.Counts{Allowed: 50}
	n.recent.Rules = []stats.RuleSummary{{Rule: "rule-12", InFlight: &stats.InFlight{Mean: 1500}}, {Rule: "rule-13", InFlight: &stats.InFlight{Mean: 3.4}}}
	n.allowed = n.denied
	n.allowed.Sampling = 8
	m.Recorder.CompleteSince = new(int64)
	*m.Recorder.CompleteSince, m.From = 1, 0
	n.alerts.Active = []alert.Alert{{Kind: alert.Shadow, Summary: "over", QuietSince: time.Unix(1, 0)}} // not listed
	for i := range 5 {
		n.alerts.Active = append(n.alerts.Active, alert.Alert{Kind: alert.Shadow, Summary: fmt.Sprint("number ", i), Silenced: i == 1})
		n.warnings.Warnings = append(n.warnings.Warnings, archive.Warning{At: archive.Instant(m.To-int64(i)*150) * 1e6, Key: "user:alice", Rule: "plan", Threshold: 95, Used: 9500 + int64(i), Limit: 10000})
	}
	return n
}

// A page has all parts, in as many rows as there are. Upstreams that are nearest to their limits
// come first, and rules with the most in flight.
func TestPageParts(t *testing.T) {
	page := busyFigures().page(somewhere("127.0.0.1:8080"), 0)
	for _, part := range []string{
		"weir top  http://127.0.0.1:8080  ", "store unavailable since ", "\nfigures of this instance only; figures incomplete before " + time.Unix(1, 0).Format(time.TimeOnly) + "; connection refused\n",
		"\n! shadow     number 0 (since ", ", silenced)\n", "\n! and 2 more; weir alerts lists them\n",
		"\n~ 95 %       user:alice has used 9,500 of 10,000 of plan (at ", "\n~ and 2 more clients near their limits\n",
		"\nrequests               10/s      1,517/s\n", "\ndenied                  0/s        300/s\n", "\nshadow denied           0/s        7.0/s\n",
		"\ndegraded, allowed       0/s        5.0/s\n", "\ndegraded, denied        0/s        3.0/s\n", "\nblocked                 0/s        2.0/s\n", "\ndenied share          0.0 %       19.8 %\n",
		"\npriority  last minute  denied share\ncritical         10/s         0.0 %\nlow              20/s        75.0 %\n",
		"\ndecisions   p50 0.0 µs   p90 0.0 µs   p99 0.0 µs\n", "\nupstream    p50 0.0 µs   p90 0.0 µs   p99 0.0 µs   errors 1.0 %\n",
		"\nadaptive    1,000 of 1,000   denied 1,234   http://1\nadaptive    998 of 1,000   denied 1,234   http://3\nadaptive    995 of 1,000   denied 1,234   http://2\n",
		"\nreserved under  model   open     now  may exceed   used  refunded\ntokens          (none)     7     900           0      0         0\nspend           gpt-4o     1  $12.50      $0.003  $3.50    $26.50\n\n",
		"\nprotect     cpu 91.3 % of 85.0 %   shed low 1,234 normal 5\n",
		"\nin flight  last 5 s  most     p50    p99\nrule-12       1,500   102  2.5 ms  1.5 s\nrule-13         3.4   103       -      -\nrule-10           0   100  2.5 ms  1.5 s\n\n",
		"\nrule     requests  allowed  denied  degraded  denied share\nrule-00     103/s    102/s   1.0/s     2.0/s         1.0 %\n",
		"\nrequests  most denied, last minute\n5,000     ip:10.0.0.0\n~4,999    ip:10.0.0.1\n", "\nrequests  most allowed, last minute (1 in 8)\n",
	} {
		if !strings.Contains(page, part) {
			t.Errorf("there is no %q in\n%s", part, page)
		}
	}
	for _, c := range []struct{ rows, rules, clients int }{{0, 20, 20}, {72, 14, 12}, {52, 4, 2}, {24, 0, 0}} {
		page := busyFigures().page(somewhere("127.0.0.1:8080"), c.rows)
		rules, clients := strings.Count(page, "rule-")-3, strings.Count(page, "ip:10")
		if c.rows > 0 && strings.Count(page, "\n") > c.rows || c.rules > 0 && rules != c.rules || clients != c.clients {
			t.Errorf("%d rows: %d rules and %d clients\n%s", c.rows, rules, clients, page)
		}
	}
}

// pages is a writer that gives away what it gets.
type pages chan string

func (p pages) Write(page []byte) (int, error) {
	p <- string(page)
	return len(page), nil
}

// Watch draws page over page, says when there is no news, and that it is over.
func TestWatch(t *testing.T) {
	r := serveStats(t, loginAndAPI)
	r.busy(t)
	var away atomic.Bool
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if away.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		r.Config.Handler.ServeHTTP(w, req)
	}))
	defer front.Close()
	base, err := url.Parse(front.URL)
	if err != nil {
		t.Fatal(err)
	}
	server, err := (&clientFlags{timeout: time.Minute}).clientOf(base)
	if err != nil {
		t.Fatal(err)
	}
	n, err := fetchFigures(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	drawn, ended := make(pages), make(chan error, 1)
	go func() { ended <- watch(ctx, server, n, time.Millisecond, drawn) }()
	until := func(text string) {
		t.Helper()
		for page := range drawn {
			if !strings.HasPrefix(page, pageStart+"weir top") || !strings.HasSuffix(page, pageEnd) {
				t.Fatalf("%q is no page", page)
			}
			if strings.Contains(page, text) {
				return
			}
		}
	}
	until("ip:203.0.113.7" + lineEnd)
	away.Store(true)
	until("answered with status 502")
	away.Store(false)
	until(lineEnd + pageEnd) // without a note
	cancel()
	for {
		select {
		case <-drawn:
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}
