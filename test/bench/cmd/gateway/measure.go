package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

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

// aim is how much of the bare proxy's rate the gateway is to have.
const aim = 0.90

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
	question, name string
	rate           float64 // requests a second
	allocs         float64 // of a request, with those of the upstream and the server
	ratio          float64 // to the bare proxy's rate of the same round
}

func measure(t testing.TB, o options, progress command.Progress) (out []figure) {
	h, all := startContestants(t), questions()
	done, total := 0, len(all)*len(h.contestants)*o.rounds
	for n, q := range all {
		turns := rounds.Turns{Contestants: len(h.contestants), Rounds: o.rounds, Seed: [2]uint64{7, uint64(n)}}
		out = append(out, summarize(testcall.Must(rounds.Take(turns, func(_, i int) (figure, error) {
			c := h.contestants[i]
			progress(done, total, c.name+", "+q.name)
			done++
			return ask(c, q, o)
		}))(t))...)
	}
	return out
}

// summarize takes the median of each contestant's rates and, because the weather changes
// from round to round, that of its ratios to the bare proxy in the same round.
func summarize(measured [][]figure) []figure {
	var reference []figure
	for _, m := range measured {
		if m[0].name == bare {
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
		if err := q.ask(one, c); err != nil { // every connection is there before
			return figure{}, err
		}
		callers[i] = one
	}
	failed := make([]error, o.callers)
	cost := rounds.AtOnce(o.callers, func(g int) {
		for range o.requests {
			if failed[g] = q.ask(callers[g], c); failed[g] != nil {
				return
			}
		}
	})
	for _, err := range failed {
		if err != nil {
			return figure{}, fmt.Errorf("%s, %s: %w", c.name, q.name, err)
		}
	}
	n := float64(o.callers * o.requests)
	return figure{question: q.name, name: c.name, rate: n / cost.Wall.Seconds(), allocs: float64(cost.Mallocs) / n}, nil
}

// ask requires the right answer of a contestant.
func (q question) ask(conn *rawhttp.Conn, c contestant) error {
	a, err := conn.Ask(q.text)
	switch {
	case err != nil:
		return fmt.Errorf("the status is %d: %w", a.Status, err)
	case a.Status != http.StatusOK:
		return fmt.Errorf("the status is %d, want 200", a.Status)
	case a.Limited != c.limited:
		return fmt.Errorf("the answer has headers about limits: %v, want %v", a.Limited, c.limited)
	case a.Length != q.body:
		return fmt.Errorf("the answer has %d bytes, want %d", a.Length, q.body)
	}
	return nil
}

// writeTable writes what a person reads.
func writeTable(w io.Writer, m machine.Description, o options, figures []figure) error {
	fmt.Fprintf(w, `%v

%d callers with a connection each; each sends its next request after the answer; median of %d rounds
that take turns. Callers, proxy and upstream share the machine.
×: rate divided by the rate of a bare proxy with the same connections, timeouts and buffers, in the
same round; median of the rounds.
allocs: allocations of a request, including those of the server and the upstream.

`, m, o.callers, o.rounds)
	var rows [][]string
	worst := table.Aim{Bound: aim, AtLeast: true}
	for _, f := range figures {
		rows = append(rows, []string{f.name, f.question, fmt.Sprintf("%.0f", f.rate), fmt.Sprintf("%.2f", f.ratio), fmt.Sprintf("%.0f", f.allocs)})
		if f.name == ours && (worst.Measured == 0 || f.ratio < worst.Measured) {
			worst.Measured = f.ratio
		}
	}
	if err := table.Write(w, []string{"<contestant", "<request", "requests a second", "×", "allocs"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nat least %.2f of the bare proxy's rate: %s, %.2f\n", aim, worst.Verdict(), worst.Measured)
	return err
}
