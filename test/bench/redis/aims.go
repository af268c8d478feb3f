package redis

import (
	"fmt"
	"io"

	"github.com/weirhq/weir/test/bench/internal/table"
	"github.com/weirhq/weir/test/bench/peers"
)

// aim is a ratio that weir's headline is to stay below.
type aim struct {
	what     string
	atMost   float64
	measured float64
}

func (a aim) verdict() string {
	if a.measured <= a.atMost {
		return "met"
	}
	return "missed"
}

// aims are those of the scenarios that were measured.
func aims(figures []Figure) []aim {
	var out []aim
	for _, f := range figures {
		if f.Contestant.Name == peers.WeirOnGoRedis {
			out = append(out, aim{f.Scenario.short() + ": time on go-redis × on its own client", 1.5, f.Median / headlineIn(f.Scenario, figures)})
		}
		if f.Contestant.Name != peers.WeirHeadline {
			continue
		}
		switch sc := f.Scenario; {
		case sc.Callers == 1:
			p50 := f.P50 / redisRateP50(figures)
			out = append(out, aim{"one caller: p50 × redis_rate's", 1.1, p50})
		case sc.Keys > 1:
			out = append(out,
				aim{sc.short() + ": time × INCR", 1.2, f.ToIncr},
				aim{sc.short() + ": time × redis_rate", 0.35, f.ToRedisRate})
		case sc.Admitted:
			out = append(out, aim{sc.short() + ": time × INCR", 0.6, f.ToIncr})
		}
	}
	return out
}

// headlineIn is the time of the headline in a scenario.
func headlineIn(sc Scenario, figures []Figure) float64 {
	for _, f := range figures {
		if f.Scenario == sc && f.Contestant.Name == peers.WeirHeadline {
			return f.Median
		}
	}
	return 0
}

// redisRateP50 is that of redis_rate.
func redisRateP50(figures []Figure) float64 {
	for _, f := range figures {
		if f.Scenario.Callers == 1 && isRedisRate(f.Contestant) {
			return f.P50
		}
	}
	return 0
}

func writeAims(w io.Writer, figures []Figure) error {
	var rows [][]string
	for _, a := range aims(figures) {
		rows = append(rows, []string{a.what, fmt.Sprintf("%.2f", a.atMost), fmt.Sprintf("%.2f", a.measured), a.verdict()})
	}
	fmt.Fprintf(w, "\n## aims of %s\n\n", peers.WeirHeadline)
	return table.Write(w, []string{"aim", "at most", "measured", "<verdict"}, rows)
}
