package redis

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/testredis"
	"github.com/weirhq/weir/test/bench/internal/bench"
	"github.com/weirhq/weir/test/bench/peers"
)

func always(answer bool) peers.Limiter {
	return peers.Limiter{Take: func(string) bool { return answer }}
}

func TestRoundNoticesWrongAnswers(t *testing.T) {
	s := server{testredis.Start(t)}
	keys := bench.Keys(10)
	two := func(allowed bool) scenario { return scenario{10, peers.Outcome(allowed), 2} }
	for _, answer := range []bool{true, false} {
		if _, err := round(s, always(answer), keys, two(answer), time.Millisecond); err != nil {
			t.Errorf("all as wanted: %v", err)
		}
		if _, err := round(s, always(answer), keys, two(!answer), time.Millisecond); err == nil {
			t.Errorf("a round in which every answer is %t passes as its opposite", answer)
		}
	}
	few := peers.OnRedis(s.Addr)[0].New(peers.Limit{N: 1, Period: peers.Month}, 10)
	defer few.Close()
	for _, key := range keys {
		few.Take(key)
	}
	if _, err := round(s, few, keys, two(true), time.Millisecond); err == nil {
		t.Error("a limit that is used up passes as all allowed")
	}
}

// slow takes its time, and one check in fifty ten times as much.
func slow(asked *int) peers.Limiter {
	return peers.Limiter{Take: func(string) bool {
		*asked++
		length := pace
		if *asked%50 == 0 {
			length *= 10
		}
		for begin := time.Now(); time.Since(begin) < length; {
		}
		return true
	}}
}

const pace = 100 * time.Microsecond

func TestRoundMeasures(t *testing.T) {
	s := server{testredis.Start(t)}
	asked := 0
	r, err := round(s, slow(&asked), bench.Keys(1), scenario{1, true, 1}, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if r.Done != asked {
		t.Errorf("%d checks were counted of %d", r.Done, asked)
	}
	// Upper bounds would be about what else the machine does.
	if r.Wall < time.Duration(asked)*pace || r.P50 < pace || r.P99 < 5*pace || r.P50 > r.P99 {
		t.Errorf("%+v for checks of %v and, one in fifty, ten times that", r, pace)
	}
}

func TestUsageIsThatOfAllKeys(t *testing.T) {
	s := server{testredis.Start(t)}
	l := peers.OnRedis(s.Addr)[0].New(peers.Exhaustible, 3000)
	defer l.Close()
	keys := bench.Keys(3000)
	for _, key := range keys {
		l.Take(key)
	}
	bytes, err := s.usage()
	if a := float64(bytes) / float64(len(keys)); err != nil || a < 50 || a > 150 {
		t.Errorf("%.1f bytes for a short key and a number, %v", a, err)
	}
	s.empty()
	if bytes, err := s.usage(); bytes != 0 || err != nil {
		t.Errorf("%d bytes after everything was removed, %v", bytes, err)
	}
}

func TestRun(t *testing.T) {
	on, r := testredis.Start(t), bench.Test(t)
	results := measure(r, on, options{keys: 20, callers: 8, rounds: 1, round: time.Millisecond})
	all := peers.OnRedis(on.Addr)
	if want := 4 * len(all); len(results.figures) != want {
		t.Fatalf("%d figures, want %d", len(results.figures), want)
	}
	for _, f := range results.figures {
		alone := f.Callers == 1
		if len(f.Rounds) != 1 || f.Median <= 0 || f.ToIncr <= 0 || f.ToRedisRate <= 0 || (f.P99 > 0) != alone {
			t.Errorf("%s, %s: %+v", f.Contestant.Name, f.scenario, f)
		}
	}
	for _, s := range results.sizes {
		if s.UsageOnce < 50 || s.UsageExhausted < s.UsageOnce {
			t.Errorf("%s: %+v", s.Contestant.Name, s)
		}
	}
	results.write(r)
	tables, summary, raw := r.File("redis.txt").String(), r.File("redis-summary.txt").String(), r.File("redis.jsonl")
	for _, c := range all {
		if got := strings.Count(tables, "| "+c.Name+" "); got < 6 {
			t.Errorf("%s is in %d of 6 tables", c.Name, got)
		}
		if got := strings.Count(summary, "| "+c.Name+" "); got != 1 {
			t.Errorf("%s is in the summary %d times", c.Name, got)
		}
	}
	if want := len(few) * len(measuredAmongFew); len(results.few) != want {
		t.Errorf("%d figures of few callers, want %d", len(results.few), want)
	}
	for _, callers := range []int{1, 2, 4, 8, 32} {
		if !strings.Contains(tables, fmt.Sprintf("\n| %-7d | ", callers)) {
			t.Errorf("there is no row for %d callers", callers)
		}
	}
	if got := strings.Count(tables, "| met ") + strings.Count(tables, "| missed "); got != 16 {
		t.Errorf("%d verdicts on 16 aims", got)
	}
	if lines, want := bytes.Count(raw.Bytes(), []byte("\n")), len(results.figures)+len(results.few)+len(results.sizes); lines != want {
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
	contestants := []peers.Contestant{
		{Name: peers.RawIncr}, {Name: peers.RedisRate}, {Name: peers.RedisRate + ", another way"}, {Name: "fast peer"}, {Name: peers.WeirHeadline, Weir: true},
	}
	var rounds [][]bench.Round
	for _, us := range [][]time.Duration{{5, 900, 4}, {40, 40, 40}, {20, 1, 21}, {1, 1, 1}, {10, 9, 11}} {
		var some []bench.Round
		for _, wall := range us {
			some = append(some, bench.Round{Callers: 8, Done: 1, Wall: wall * time.Second})
		}
		rounds = append(rounds, some)
	}
	got := figures(contestants, scenario{Keys: 10, Allowed: true, Callers: 8}, bench.Results[bench.Round]{Rounds: rounds})
	for i, want := range []struct{ incr, redisRate float64 }{{1, 0.125}, {8, 1}, {4, 0.5}, {0.2, 0.025}, {2, 0.25}} {
		if f := got[i]; f.ToIncr != want.incr || f.ToRedisRate != want.redisRate {
			t.Errorf("%s: %v × INCR, %v × redis_rate, want %+v", f.Contestant.Name, f.ToIncr, f.ToRedisRate, want)
		}
	}
	verdicts := map[string]string{}
	for _, a := range (results{figures: got}).aims() {
		verdicts[a.What] = a.Verdict()
	}
	if len(verdicts) != 2 || verdicts["10 keys: time × INCR"] != "missed" || verdicts["10 keys: time × redis_rate"] != "met" {
		t.Errorf("verdicts %v", verdicts)
	}
}

func TestAims(t *testing.T) {
	ours, theirs := peers.Contestant{Name: peers.WeirHeadline}, peers.Contestant{Name: peers.RedisRate}
	many, one, alone := scenario{10_000, true, 128}, scenario{1, true, 128}, scenario{10_000, true, 1}
	measured := []figure{
		{Contestant: ours, scenario: many, Median: 4, ToIncr: 1.2, ToRedisRate: 0.36},
		{Contestant: peers.Contestant{Name: peers.WeirOnGoRedis}, scenario: many, Median: 6.4},
		{Contestant: theirs, scenario: many, ToIncr: 9, ToRedisRate: 1},
		{Contestant: ours, scenario: one, ToIncr: 0.61},
		{Contestant: ours, scenario: scenario{1, false, 128}, ToIncr: 9},
		{Contestant: ours, scenario: alone, P50: 43},
		{Contestant: theirs, scenario: alone, P50: 40},
	}
	var b bytes.Buffer
	results{
		figures: measured,
		few:     []figure{{Contestant: ours, scenario: scenario{10_000, true, 4}, ToIncr: 1.2, ToRedisRate: 1.1}, {Contestant: theirs, scenario: scenario{10_000, true, 4}}},
	}.writeAims(&b)
	want := `
## aims of weir token_bucket

| aim                                               | at most | measured | verdict |
|---------------------------------------------------|--------:|---------:|---------|
| 10 000 keys: time × INCR                          |    1.20 |     1.20 | met     |
| 10 000 keys: time × redis_rate                    |    0.35 |     0.36 | missed  |
| 10 000 keys: time on go-redis × on its own client |    1.50 |     1.60 | missed  |
| 1 key: time × INCR                                |    0.60 |     0.61 | missed  |
| one caller: p50 × redis_rate's                    |    1.10 |     1.07 | met     |
| 4 callers: time × INCR                            |    1.30 |     1.20 | met     |
| 4 callers: time × redis_rate                      |    1.00 |     1.10 | missed  |
`
	if b.String() != want {
		t.Errorf("got %s", b.String())
	}
}
