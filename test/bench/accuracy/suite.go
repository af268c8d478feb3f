package accuracy

import (
	"fmt"
	"io"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/test/bench/internal/table"
)

// Kinds are all kinds of traffic. The limit of the first is such that only the
// heaviest sources meet it.
func Kinds(quick bool) []Traffic {
	if quick {
		return []Traffic{Zipf(2_000, 200_000, 60), Bursts(20, 40, 60), Sawtooth(20, 20, 60), Attack(64, 60)}
	}
	return []Traffic{Zipf(270_000, 40e6, 1000), Bursts(500, 100, 100), Sawtooth(1000, 20, 100), Attack(1000, 100)}
}

// Report measures every algorithm with every kind of traffic, and writes a table for
// each. The output depends only on quick.
func Report(w io.Writer, quick bool, progress func(done, total int, what string)) error {
	kinds := Kinds(quick)
	done, total := 0, len(kinds[0].CountingLimits())
	for _, t := range kinds {
		total += len(t.Limits())
	}
	var mu sync.Mutex // algorithms finish side by side
	step := func(what string) func() {
		report := func() {
			if progress != nil {
				progress(done, total, what)
			}
		}
		report()
		return func() {
			mu.Lock()
			defer mu.Unlock()
			done++
			report()
		}
	}
	fmt.Fprint(w, heading)
	for i, t := range kinds {
		results, err := t.Run(t.Limits(), step(t.Name))
		if err != nil {
			return err
		}
		if err := WriteResults(w, t, t.Name, results); err != nil {
			return err
		}
		if i == 0 {
			title := t.Name + ", denied requests counted too"
			if results, err = t.Run(t.CountingLimits(), step(title)); err != nil {
				return err
			}
			fmt.Fprintln(w)
			if err := WriteResults(w, t, title, results); err != nil {
				return err
			}
			fmt.Fprintf(w, "\n%s\n", Published)
		}
		fmt.Fprintln(w)
	}
	return nil
}

const heading = `# How often is an answer false?

The exact answer comes from a log of what the same algorithm has allowed to the
same source in the last period. An answer is false if it differs from the exact
one. Shares are of all requests. For a source at its limit, an error of one unit
makes an answer false. The column "off by > 1 % of N" counts only false answers
with an error of more than a hundredth of N.

`

// Published is the figure that others have measured, to read ours by.
const Published = `Published: 0.003 % false answers of the sliding window counter on real traffic
(Cloudflare, 2017: 400 million requests of 270 000 sources). There, denied
requests count, too.`

// WriteResults writes the table of one kind of traffic.
func WriteResults(w io.Writer, t Traffic, title string, results []Result) error {
	fmt.Fprintf(w, "## %s\n\n%s.\nLimit %d in %v.%s\n\n", title, t.About, t.N, t.Period, over(results))
	var rows [][]string
	for _, r := range results {
		rows = append(rows, r.row())
	}
	return table.Write(w, []string{
		"algorithm", "requests", "allowed", "falsely allowed", "falsely denied",
		"off by > 1 % of N", "most in a period", "bound",
	}, rows)
}

// over says who is over the limit at all, by the exact log.
func over(results []Result) string {
	for _, r := range results {
		if r.Limit.Algorithm == weir.SlidingLog {
			v := r.Verdict
			return fmt.Sprintf(" %s of %s sources are over it at some time; they send %s of the requests.",
				table.Count(v.Over), table.Count(v.Sources), v.share(v.OverRequests, 1))
		}
	}
	return ""
}

func (r Result) row() []string {
	v := r.Verdict
	return []string{
		r.Limit.Algorithm.String(), table.Count(v.Requests), v.share(v.Allowed, 2),
		v.share(v.FalselyAllowed, 4), v.share(v.FalselyDenied, 4), v.share(v.Gross, 4),
		fmt.Sprintf("%d = %.2f N", v.Most, float64(v.Most)/float64(r.Limit.N)),
		fmt.Sprintf("%d", r.Bound),
	}
}

func (v Verdict) share(n int64, digits int) string {
	return fmt.Sprintf("%.*f %%", digits, 100*float64(n)/float64(v.Requests))
}
