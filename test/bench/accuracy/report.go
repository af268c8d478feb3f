package accuracy

import (
	"fmt"
	"io"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/test/bench/internal/table"
)

// Published is the figure that others have measured, to read ours by.
const Published = `Published: 0.003 % judged wrongly by the two-counter window on real traffic
(Cloudflare, 2017: 400 million requests of 270 000 sources), where every request
that matches is counted.`

// WriteResults writes the table of one kind of traffic.
func WriteResults(w io.Writer, t Traffic, title string, results []Result) error {
	fmt.Fprintf(w, "## %s\n\n%s.\nLimit %d in %v.%s\n\n", title, t.About, t.N, t.Period, over(results))
	var rows [][]string
	for _, r := range results {
		rows = append(rows, r.row())
	}
	return table.Write(w, []string{
		"algorithm", "requests", "admitted", "falsely admitted", "falsely refused",
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
		r.Limit.Algorithm.String(), table.Count(v.Requests), v.share(v.Admitted, 2),
		v.share(v.FalseAdmissions, 4), v.share(v.FalseRefusals, 4), v.share(v.Gross, 4),
		fmt.Sprintf("%d = %.2f N", v.Most, float64(v.Most)/float64(r.Limit.N)),
		fmt.Sprintf("%d", r.Bound),
	}
}

func (v Verdict) share(n int64, digits int) string {
	return fmt.Sprintf("%.*f %%", digits, 100*float64(n)/float64(v.Requests))
}
