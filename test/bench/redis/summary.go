package redis

import (
	"fmt"
	"io"

	"github.com/weirhq/weir/test/bench/internal/table"
)

// WriteSummary writes one table: every contestant, every scenario as a ratio to
// redis_rate, and what the first scenario costs the server.
func WriteSummary(w io.Writer, r Results) error {
	all := scenarios(r.Figures)
	header := []string{"time × redis_rate"}
	for _, sc := range all {
		header = append(header, sc.short())
	}
	header = append(header, "server µs", "bytes a key")
	var rows [][]string
	for i, s := range r.Sizes {
		row, server := []string{s.Contestant.Name}, 0.0
		for j := range all {
			// The figures come scenario by scenario, in the order of the sizes.
			f := r.Figures[j*len(r.Sizes)+i]
			row = append(row, fmt.Sprintf("%.2f", f.ToRedisRate))
			if j == 0 {
				server = f.Server
			}
		}
		rows = append(rows, append(row, fmt.Sprintf("%.1f", server), whole(s.Once.Usage)))
	}
	if err := table.Write(w, header, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s, where not one; admitted, where not refused. Below 1.00 is faster than\nredis_rate on a pool of connections, as people run it. Server µs and bytes are those of %s.\n",
		count(all[0].Callers, "caller"), count(all[0].Keys, "key"))
	return err
}
