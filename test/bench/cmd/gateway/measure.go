package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testcall"
	"github.com/weirhq/weir/test/bench/internal/command"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/rawhttp"
	"github.com/weirhq/weir/test/bench/internal/rounds"
	"github.com/weirhq/weir/test/bench/internal/table"
)

// options say how long to measure.
type options struct {
	callers  int
	requests int // of each caller in a round
	rounds   int
}

// full is what results/ holds, first a first look.
var (
	full  = options{callers: 32, requests: 400, rounds: 21}
	first = options{callers: 32, requests: 100, rounds: 3}
)

// group is a comparison: the contestants in front of one upstream, and what they are asked.
type group struct {
	name      string
	start     func(testing.TB) *field
	questions func() []question

	// The subject is to have at least aim of the reference's rate.
	subject, reference string
	aim                float64
}

var groups = []group{
	{"the gateway beside a bare proxy", startProxies, questions, ours, bare, 0.97},
	{"the gateway with and without counting of tokens", startModels, modelQuestions, counting, ours, 0.90},
	{"the gateway with and without a limit of requests in flight", startPlaces, questions, places, ours, 0.92},
}

// question is what all callers ask.
type question struct {
	name string
	text []byte
	body int // bytes of the answer
}

func questions() []question {
	const head = " HTTP/1.1\r\nHost: api.example.com\r\nUser-Agent: bench/1\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n"
	return []question{
		{"GET, short answer", []byte("GET /api/things/42?fields=all" + head + "\r\n"), len(short)},
		{"GET, 64 KiB", []byte("GET /long" + head + "\r\n"), len(long)},
		{"POST, 1 KiB", []byte("POST /api/things" + head + "Content-Type: text/plain\r\nContent-Length: 1024\r\n\r\n" + strings.Repeat("x", 1024)), len(short)},
	}
}

// figure is what one contestant did with one question.
type figure struct {
	group          int
	question, name string
	rate           float64       // requests a second
	allocs         float64       // of a request, with those of the upstream and the server
	ratio          float64       // to the reference's rate of the same round
	first          time.Duration // until the first byte of the answer, one caller alone
}

func measure(t testing.TB, o options, progress command.Progress) (out []figure) {
	done, total := 0, 0
	for _, g := range groups {
		total += len(g.questions())
	}
	for n, g := range groups {
		h := g.start(t)
		for k, q := range g.questions() {
			progress(done, total, g.name+": "+q.name)
			done++
			turns := rounds.Turns{Contestants: len(h.contestants), Rounds: o.rounds, Seed: [2]uint64{uint64(n), uint64(k)}}
			measured := testcall.Must(rounds.Take(turns, func(_, i int) (figure, error) {
				f, err := ask(h.contestants[i], q, o)
				f.group = n
				return f, err
			}))(t)
			out = append(out, summarize(measured, g.reference)...)
		}
	}
	return out
}

// summarize takes the median of each contestant's rates and, because the weather changes
// from round to round, that of its ratios to the reference in the same round.
func summarize(measured [][]figure, name string) []figure {
	var reference []figure
	for _, m := range measured {
		if m[0].name == name {
			reference = m
		}
	}
	var out []figure
	for _, m := range measured {
		for i := range m {
			m[i].ratio = m[i].rate / reference[i].rate
		}
		f := rounds.Median(m, func(f figure) float64 { return f.rate })
		f.ratio = rounds.Median(m, func(f figure) float64 { return f.ratio }).ratio
		f.first = rounds.Median(m, func(f figure) float64 { return float64(f.first) }).first
		out = append(out, f)
	}
	return out
}

// ask lets all callers ask as often as they are to, each on a connection of its own.
func ask(c contestant, q question, o options) (figure, error) {
	callers := make([]*rawhttp.Conn, o.callers)
	for i := range callers {
		one, err := rawhttp.Dial(c.addr)
		if err != nil {
			return figure{}, err
		}
		defer one.Close()
		if _, err := q.ask(one, c); err != nil { // every connection is there before
			return figure{}, err
		}
		callers[i] = one
	}
	failed := make([]error, o.callers)
	cost := rounds.AtOnce(o.callers, func(g int) {
		for range o.requests {
			if _, failed[g] = q.ask(callers[g], c); failed[g] != nil {
				return
			}
		}
	})
	firsts := make([]time.Duration, max(1, o.requests/4))
	for i := range firsts {
		if firsts[i], failed[0] = q.ask(callers[0], c); failed[0] != nil {
			break
		}
	}
	for _, err := range failed {
		if err != nil {
			return figure{}, fmt.Errorf("%s, %s: %w", c.name, q.name, err)
		}
	}
	n := float64(o.callers * o.requests)
	return figure{
		question: q.name, name: c.name, rate: n / cost.Wall.Seconds(), allocs: float64(cost.Mallocs) / n,
		first: rounds.Median(firsts, func(d time.Duration) float64 { return float64(d) }),
	}, nil
}

// ask requires the right answer of a contestant, and returns how long its first byte took.
func (q question) ask(conn *rawhttp.Conn, c contestant) (time.Duration, error) {
	a, err := conn.Ask(q.text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("the status is %d: %w", a.Status, err)
	case a.Status != http.StatusOK:
		return 0, fmt.Errorf("the status is %d, want 200", a.Status)
	case a.Limited != c.limited:
		return 0, fmt.Errorf("the answer has headers about limits: %v, want %v", a.Limited, c.limited)
	case a.Length != q.body:
		return 0, fmt.Errorf("the answer has %d bytes, want %d", a.Length, q.body)
	}
	return a.First, nil
}

// writeTable writes what a person reads.
func writeTable(w io.Writer, m machine.Description, o options, figures []figure) error {
	fmt.Fprintf(w, `%v

%d callers with a connection each; each sends its next request after the answer; median of %d rounds
that take turns. Callers, proxy and upstream share the machine.
×: rate divided by the rate of the reference in the same round; median of the rounds. The reference is
a bare proxy with the same connections, timeouts and buffers; for tokens, the gateway that counts none.
first byte: from the request to the first byte of the body, with one caller alone; median.
allocs: allocations of a request, including those of the server and the upstream.

`, m, o.callers, o.rounds)
	var rows [][]string
	aims := make([]table.Aim, len(groups))
	for _, f := range figures {
		rows = append(rows, []string{f.name, f.question, fmt.Sprintf("%.0f", f.rate), fmt.Sprintf("%.2f", f.ratio),
			fmt.Sprintf("%d µs", f.first.Microseconds()), fmt.Sprintf("%.0f", f.allocs)})
		g, a := groups[f.group], &aims[f.group]
		if f.name == g.subject && (a.Measured == 0 || f.ratio < a.Measured) {
			*a = table.Aim{What: g.name, Bound: g.aim, AtLeast: true, Measured: f.ratio, Where: f.question}
		}
	}
	if err := table.Write(w, []string{"<contestant", "<request", "requests a second", "×", "first byte", "allocs"}, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return table.WriteAims(w, "worst with", aims)
}
