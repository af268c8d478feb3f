package main

import (
	"fmt"
	"io"
	"time"

	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/internal/table"
	"github.com/weirhq/weir/test/conformance/envoy/peer"
)

// aims compare with the better of the other service's two settings.
func aims(figures []figure) []table.Aim {
	rate := map[string]float64{}
	for _, f := range figures {
		rate[f.name] = f.rate
	}
	best := max(rate[theirs], rate[theirs+", tuned"])
	return []table.Aim{
		{What: weirRedis + ": requests × " + theirs, AtLeast: true, Bound: 2, Measured: rate[weirRedis] / best},
		{What: weirRedis + ": requests × nothing", AtLeast: true, Bound: 0.75, Measured: rate[weirRedis] / rate[doesNothing]},
		{What: weirMemory + ": requests × nothing", AtLeast: true, Bound: 0.9, Measured: rate[weirMemory] / rate[doesNothing]},
	}
}

func writeTable(w io.Writer, m machine.Description, o options, figures []figure) error {
	fmt.Fprintf(w, "%v\nEnvoy's rate limit service over gRPC: %d callers over %d connections, %s values of one descriptor.\n", m, o.callers, o.connections, table.Count(int64(o.values)))
	fmt.Fprintf(w, "Callers, services and Redis share the machine. CPU is what a request costs the service and its Redis.\n%s is %s.\n\n", theirs, peer.Version)
	nothing := 0.0
	for _, f := range figures {
		if f.name == doesNothing {
			nothing = f.rate
		}
	}
	var rows [][]string
	for _, f := range figures {
		rows = append(rows, []string{
			f.name, table.Count(int64(f.rate)), fmt.Sprintf("%.2f", f.rate/nothing), millis(f.p50), millis(f.p99), micros(f.cpu),
		})
	}
	if err := table.Write(w, []string{"contestant", "requests/s", "× nothing", "p50 ms", "p99 ms", "CPU µs"}, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return table.WriteAims(w, "", aims(figures))
}

// micros is empty where Linux is not there to say.
func micros(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", float64(d)/float64(time.Microsecond))
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d.Microseconds())/1000) }
