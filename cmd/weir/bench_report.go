package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/loadgen"
	"github.com/weirhq/weir/internal/phrase"
)

// quantiles are those that are shown.
var quantiles = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}}

func writeBenchText(w io.Writer, f *benchFlags, t *target, r *loadgen.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s for %v, %s, %s\n\n", phrase.Count(f.concurrency, "caller"), short(r.Elapsed), phrase.Count(t.clients(), "client"), printable(t.name))
	writeOutcomes(&b, r)
	for _, text := range r.Texts {
		fmt.Fprintf(&b, "  %s\n", printable(text))
	}
	if r.Answered > 0 {
		var parts []string
		for _, p := range quantiles {
			parts = append(parts, fmt.Sprintf("%s %v", p.name, short(r.Latency.Quantile(p.q))))
		}
		fmt.Fprintf(&b, "\n%s\n\n", strings.Join(parts, "  "))
		writeBars(&b, &r.Latency)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeOutcomes says how many requests ended in which way.
func writeOutcomes(w io.Writer, r *loadgen.Report) {
	type row struct {
		name string
		n    int64
		note string
	}
	rows := []row{{"answered", r.Answered, fmt.Sprintf("%.0f/s", r.Rate())}}
	for _, outcome := range slices.Sorted(maps.Keys(r.Outcomes)) {
		n := r.Outcomes[outcome]
		rows = append(rows, row{outcome, n, fmt.Sprintf("%.1f%%", 100*float64(n)/float64(r.Answered))})
	}
	if r.Errors > 0 {
		rows = append(rows, row{"no answer", r.Errors, ""})
	}
	if r.Unfinished > 0 {
		rows = append(rows, row{"unfinished", r.Unfinished, ""})
	}
	wide := 0
	for _, row := range rows {
		wide = max(wide, len(row.name))
	}
	for _, row := range rows {
		line := fmt.Sprintf("%-*s  %9d  %9s", wide, row.name, row.n, row.note)
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// writeBars draws how many took how long, in steps of 1, 2 and 5.
func writeBars(w io.Writer, h *loadgen.Histogram) {
	type row struct {
		upTo time.Duration
		n    int64
	}
	var rows []row
	most, before := int64(0), int64(0)
	for step, i := time.Microsecond, 0; before < h.Count() && i < 40; i++ {
		upTo := step * time.Duration([]int{1, 2, 5}[i%3])
		if i%3 == 2 {
			step *= 10
		}
		if within := h.Within(upTo); within > 0 {
			rows = append(rows, row{upTo, within - before})
			most, before = max(most, within-before), within
		}
	}
	const columns = 40
	for _, r := range rows {
		// What is there is seen, however little it is.
		wide := int(math.Ceil(columns * float64(r.n) / float64(most)))
		line := fmt.Sprintf("up to %-7v%9d  %s", r.upTo, r.n, strings.Repeat("█", wide))
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// short is a length of time in three digits, about as exact as it was measured.
func short(d time.Duration) time.Duration {
	to := time.Duration(1)
	for d/to >= 1000 {
		to *= 10
	}
	return d.Round(to)
}

// benchJSON is a measurement for programs. Times are in microseconds.
type benchJSON struct {
	Target      string             `json:"target"`
	Concurrency int                `json:"concurrency"`
	Keys        int                `json:"keys"`
	Seconds     float64            `json:"seconds"`
	Answered    int64              `json:"answered"`
	Rate        float64            `json:"rate"`
	Outcomes    map[string]int64   `json:"outcomes"`
	Errors      int64              `json:"errors"`
	Texts       []string           `json:"error_texts,omitempty"`
	Unfinished  int64              `json:"unfinished"`
	Latency     map[string]float64 `json:"latency_us"`
}

func writeBenchJSON(w io.Writer, f *benchFlags, t *target, r *loadgen.Report) error {
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	out := benchJSON{
		Target: t.name, Concurrency: f.concurrency, Keys: t.clients(), Seconds: r.Elapsed.Seconds(), Answered: r.Answered, Rate: r.Rate(),
		Outcomes: r.Outcomes, Errors: r.Errors, Texts: r.Texts, Unfinished: r.Unfinished,
		Latency: map[string]float64{"mean": micros(r.Latency.Mean())},
	}
	for _, p := range quantiles {
		out.Latency[p.name] = micros(r.Latency.Quantile(p.q))
	}
	return writeJSON(w, out)
}
