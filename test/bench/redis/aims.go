package redis

import (
	"fmt"
	"io"

	"github.com/weirhq/weir/test/bench/internal/table"
	"github.com/weirhq/weir/test/bench/peers"
)

// aims are those of the scenarios that were measured. Among few callers, weir is never slower
// than redis_rate, nor much slower than the yardstick.
func aims(figures, few []Figure) []table.Aim {
	var out []table.Aim
	below := func(what string, bound, measured float64) {
		out = append(out, table.Aim{What: what, Bound: bound, Measured: measured})
	}
	for _, f := range figures {
		sc := f.Scenario
		if f.Contestant.Name == peers.WeirOnGoRedis {
			below(sc.short()+": time on go-redis × on its own client", 1.5, f.Median/of(figures, sc, peers.WeirHeadline).Median)
		}
		if f.Contestant.Name != peers.WeirHeadline {
			continue
		}
		switch {
		case sc.Callers == 1:
			below("one caller: p50 × redis_rate's", 1.1, f.P50/of(figures, sc, peers.RedisRate).P50)
		case sc.Keys > 1:
			below(sc.short()+": time × INCR", 1.2, f.ToIncr)
			below(sc.short()+": time × redis_rate", 0.35, f.ToRedisRate)
		case bool(sc.Allowed):
			below(sc.short()+": time × INCR", 0.6, f.ToIncr)
		}
	}
	for _, f := range few {
		if f.Contestant.Name == peers.WeirHeadline {
			below(fmt.Sprintf("%d callers: time × INCR", f.Scenario.Callers), 1.3, f.ToIncr)
			below(fmt.Sprintf("%d callers: time × redis_rate", f.Scenario.Callers), 1, f.ToRedisRate)
		}
	}
	return out
}

// of is what was measured of a contestant in a scenario.
func of(figures []Figure, sc Scenario, name string) Figure {
	for _, f := range figures {
		if f.Scenario == sc && f.Contestant.Name == name {
			return f
		}
	}
	return Figure{}
}

func writeAims(w io.Writer, figures, few []Figure) error {
	fmt.Fprintf(w, "\n## aims of %s\n\n", peers.WeirHeadline)
	return table.WriteAims(w, "", aims(figures, few))
}
