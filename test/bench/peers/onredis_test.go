package peers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/test/bench/internal/bench"
)

func TestUsageIsThatOfAllKeys(t *testing.T) {
	addr := testredis.Start(t).Addr
	h := &onRedis{server: bench.NewServer(t, addr)}
	l := OnRedis(addr)[0].New(Exhaustible, 3000)
	defer l.Close()
	keys := bench.Keys(3000)
	for _, key := range keys {
		l.Take(key)
	}
	if a := float64(h.usage()) / float64(len(keys)); a < 50 || a > 150 {
		t.Errorf("%.1f bytes for a short key and a number", a)
	}
	h.server.Do("FLUSHALL", "SYNC")
	if bytes := h.usage(); bytes != 0 {
		t.Errorf("%d bytes after everything was removed", bytes)
	}
}

func TestRunRedis(t *testing.T) {
	r := bench.Test(t)
	h := runRedis(r, options{keys: []int{20}, callers: []int{1, 16}, rounds: 1, round: time.Millisecond})
	figures := map[bool]int{}
	for _, s := range h.stages {
		for i, name := range s.Names {
			figures[len(s.Names) == len(h.contestants)]++
			if p99 := s.Median(i, bench.Round.P99Nanos); len(s.Rounds[i]) != 1 || s.micros(name) <= 0 || s.times(name, RawIncr) <= 0 || (p99 > 0) != (s.callers == 1) {
				t.Errorf("%s, %s: %+v", name, s.scenario, s.Rounds[i])
			}
		}
	}
	if figures[true] != 4*len(h.contestants) || figures[false] != len(few)*len(measuredAmongFew) {
		t.Errorf("%v figures", figures)
	}
	for _, s := range h.sizes {
		if s.once.bytes < 50 || s.exhausted.bytes < s.once.bytes {
			t.Errorf("%+v", s)
		}
	}
	tables, summary, raw := r.File("redis.txt").String(), r.File("redis-summary.txt").String(), r.File("redis.jsonl")
	for _, c := range h.contestants {
		if got := strings.Count(tables, "| "+c.Name+" "); got < 6 {
			t.Errorf("%s is in %d of 6 tables", c.Name, got)
		}
		if got := strings.Count(summary, "| "+c.Name+" "); got != 1 {
			t.Errorf("%s is in the summary %d times", c.Name, got)
		}
	}
	for _, callers := range []int{1, 2, 4, 8, 16, 32} {
		if !strings.Contains(tables, fmt.Sprintf("\n| %-7d | ", callers)) {
			t.Errorf("there is no row for %d callers", callers)
		}
	}
	if got := strings.Count(tables, "| met ") + strings.Count(tables, "| missed "); got != 16 {
		t.Errorf("%d verdicts on 16 aims", got)
	}
	if lines, want := bytes.Count(raw.Bytes(), []byte("\n")), figures[true]+figures[false]+len(h.sizes); lines != want {
		t.Errorf("%d raw lines for %d figures", lines, want)
	}
	var line struct {
		Go, Redis, Outcome string
		Rounds             []float64 `json:"rounds_us"`
	}
	if err := json.NewDecoder(raw).Decode(&line); err != nil || line.Go == "" || line.Redis == "" || line.Outcome != "allowed" || len(line.Rounds) != 1 {
		t.Errorf("first raw line: %+v, %v", line, err)
	}
}

func TestFiguresCompareWithTheOrdinaryWay(t *testing.T) {
	contestants := []Contestant{{Name: RawIncr}, {Name: RedisRate}, {Name: RedisRate + ", another way"}, {Name: "fast peer"}, {Name: WeirHeadline, Weir: true}}
	s := staged(scenario{10, Allowed, 8}, contestants, []time.Duration{5, 900, 4}, []time.Duration{40, 40, 40}, []time.Duration{20, 1, 21}, []time.Duration{1, 1, 1}, []time.Duration{10, 9, 11})
	for i, want := range []struct{ incr, redisRate float64 }{{1, 0.125}, {8, 1}, {4, 0.5}, {0.2, 0.025}, {2, 0.25}} {
		name := s.Names[i]
		if incr, rate := s.times(name, RawIncr), s.times(name, RedisRate); math.Abs(incr-want.incr) > 1e-9 || math.Abs(rate-want.redisRate) > 1e-9 {
			t.Errorf("%s: %v × INCR, %v × redis_rate, want %+v", name, incr, rate, want)
		}
	}
}

func TestAims(t *testing.T) {
	all := []Contestant{{Name: RawIncr}, {Name: RedisRate}, {Name: WeirHeadline}, {Name: WeirOnGoRedis}}
	at := func(sc scenario, contestants []Contestant, figures ...time.Duration) stage {
		var walls [][]time.Duration
		for _, f := range figures {
			walls = append(walls, []time.Duration{f})
		}
		return staged(sc, contestants, walls...)
	}
	h := &onRedis{harness: harness{options: options{keys: []int{10_000}}, contestants: all, stages: []stage{
		at(scenario{10_000, true, 128}, all, 100, 334, 120, 192),
		at(scenario{1, true, 128}, all, 100, 200, 61, 61),
		at(scenario{1, false, 128}, all, 100, 200, 900, 900),
		at(scenario{10_000, true, 1}, all, 10, 40, 43, 43),
	}}}
	for _, n := range few {
		h.stages = append(h.stages, at(scenario{10_000, true, n}, all[:3], 100, 109, 120))
	}
	want := `
| aim                                                 | at most | measured | verdict |
|-----------------------------------------------------|--------:|---------:|---------|
| 10 000 keys: time × INCR                            |    1.20 |     1.20 | met     |
| 10 000 keys: time × redis_rate                      |    0.35 |     0.36 | missed  |
| 10 000 keys: time on go-redis × on its own client   |    1.50 |     1.60 | missed  |
| 1 key: time × INCR                                  |    0.60 |     0.61 | missed  |
| 1 key: time on go-redis × on its own client         |    1.50 |     1.00 | met     |
| 1 key, denied: time on go-redis × on its own client |    1.50 |     1.00 | met     |
| one caller: p50 × redis_rate's                      |    1.10 |     1.07 | met     |
| one caller: time on go-redis × on its own client    |    1.50 |     1.00 | met     |
| 2 callers: time × INCR                              |    1.30 |     1.20 | met     |
| 2 callers: time × redis_rate                        |    1.00 |     1.10 | missed  |
`
	if got := "\n" + bench.Aims("", h.aims()).String(); !strings.HasPrefix(got, want) {
		t.Errorf("got %s", got)
	}
}
