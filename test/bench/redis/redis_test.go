package redis

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testredis"
	"github.com/weirhq/weir/test/bench/internal/clients"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/peers"
)

func always(answer bool) peers.Limiter {
	return peers.Limiter{Take: func(string) bool { return answer }}
}

func TestRoundNoticesWrongAnswers(t *testing.T) {
	s := server{testredis.Start(t)}
	keys := clients.Keys(10)
	walks := [][]uint32{clients.Walk(0, 10, walkLen), clients.Walk(1, 10, walkLen)}
	for _, answer := range []bool{true, false} {
		if _, err := runRound(s, always(answer), keys, walks, time.Millisecond, peers.Outcome(answer)); err != nil {
			t.Errorf("all as wanted: %v", err)
		}
		if _, err := runRound(s, always(answer), keys, walks, time.Millisecond, peers.Outcome(!answer)); err == nil {
			t.Errorf("a round in which every answer is %t passes as its opposite", answer)
		}
	}
	few := peers.OnRedis(s.Addr)[0].New(peers.Limit{N: 1, Period: peers.Month}, 10)
	defer few.Close()
	for _, key := range keys {
		few.Take(key)
	}
	if _, err := runRound(s, few, keys, walks, time.Millisecond, true); err == nil {
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
	r, err := runRound(s, slow(&asked), clients.Keys(1), [][]uint32{clients.Walk(0, 1, walkLen)}, 50*time.Millisecond, true)
	if err != nil {
		t.Fatal(err)
	}
	if r.checks != asked {
		t.Errorf("%d checks were counted of %d", r.checks, asked)
	}
	// Upper bounds would be about what else the machine does.
	if least := micros(pace); r.us < least || r.p50 < least || r.p99 < 5*least || r.p50 > r.p99 {
		t.Errorf("%+v for checks of %v and, one in fifty, ten times that", r, pace)
	}
}

func TestUsageIsThatOfAllKeys(t *testing.T) {
	s := server{testredis.Start(t)}
	l := peers.OnRedis(s.Addr)[0].New(peers.Exhaustible, 3000)
	defer l.Close()
	keys := clients.Keys(3000)
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

func TestRunAndReport(t *testing.T) {
	on := testredis.Start(t)
	last, total := 0, 0
	o := Options{
		Keys: 20, Callers: 8, Rounds: 3, Round: 4 * time.Millisecond, WarmUp: time.Millisecond,
	}
	results := Run(t, on, o, func(d, all int, _ string) { last, total = d, all })
	if last != total-1 {
		t.Errorf("the last of %d steps was %d", total, last)
	}
	all := peers.OnRedis(on.Addr)
	if want := 4 * len(all); len(results.Figures) != want {
		t.Fatalf("%d figures, want %d", len(results.Figures), want)
	}
	for _, f := range results.Figures {
		alone := f.Scenario.Callers == 1
		if len(f.Rounds) != 3 || f.Median <= 0 || f.ToIncr <= 0 || f.ToRedisRate <= 0 || (f.P99 > 0) != alone {
			t.Errorf("%s, %s: %+v", f.Contestant.Name, f.Scenario, f)
		}
	}
	for _, s := range results.Sizes {
		if s.UsageOnce < 50 || s.UsageExhausted < s.UsageOnce {
			t.Errorf("%s: %+v", s.Contestant.Name, s)
		}
	}
	var tables, summary, raw bytes.Buffer
	if err := results.WriteTables(&tables, machine.Describe()); err != nil {
		t.Fatal(err)
	}
	if err := results.WriteSummary(&summary); err != nil {
		t.Fatal(err)
	}
	if err := results.WriteRaw(&raw, machine.Describe()); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if got := strings.Count(tables.String(), "| "+c.Name+" "); got < 5 {
			t.Errorf("%s is in %d of 5 tables", c.Name, got)
		}
		if got := strings.Count(summary.String(), "| "+c.Name+" "); got != 1 {
			t.Errorf("%s is in the summary %d times", c.Name, got)
		}
	}
	if want := len(few) * len(measuredAmongFew); len(results.Few) != want {
		t.Errorf("%d figures of few callers, want %d", len(results.Few), want)
	}
	for _, callers := range []int{1, 2, 4, 8, 32} {
		if !strings.Contains(tables.String(), fmt.Sprintf("\n| %-7d | ", callers)) {
			t.Errorf("there is no row for %d callers", callers)
		}
	}
	if got := strings.Count(tables.String(), "| met ") + strings.Count(tables.String(), "| missed "); got != 16 {
		t.Errorf("%d verdicts on 16 aims", got)
	}
	if lines, want := bytes.Count(raw.Bytes(), []byte("\n")), len(results.Figures)+len(results.Few)+len(results.Sizes); lines != want {
		t.Errorf("%d raw lines for %d figures", lines, want)
	}
	var line struct {
		Go, Redis string
		Rounds    []float64 `json:"rounds_us"`
	}
	if err := json.NewDecoder(&raw).Decode(&line); err != nil || line.Go == "" || line.Redis == "" || len(line.Rounds) != 3 {
		t.Errorf("first raw line: %+v, %v", line, err)
	}
}

func TestFiguresCompareWithTheOrdinaryWay(t *testing.T) {
	contestants := []peers.Contestant{
		{Name: peers.RawIncr}, {Name: peers.RedisRate}, {Name: peers.RedisRate + ", another way"}, {Name: "fast peer"}, {Name: peers.WeirHeadline, Weir: true},
	}
	rounds := [][]round{{{us: 5}, {us: 900}, {us: 4}}, {{us: 40}, {us: 40}, {us: 40}}, {{us: 20}, {us: 1}, {us: 21}}, {{us: 1}, {us: 1}, {us: 1}}, {{us: 10}, {us: 9}, {us: 11}}}
	got := figures(contestants, Scenario{Keys: 10, Allowed: true, Callers: 8}, rounds)
	for i, want := range []struct{ incr, redisRate float64 }{{1, 0.125}, {8, 1}, {4, 0.5}, {0.2, 0.025}, {2, 0.25}} {
		if f := got[i]; f.ToIncr != want.incr || f.ToRedisRate != want.redisRate {
			t.Errorf("%s: %v × INCR, %v × redis_rate, want %+v", f.Contestant.Name, f.ToIncr, f.ToRedisRate, want)
		}
	}
	verdicts := map[string]string{}
	for _, a := range aims(got, nil) {
		verdicts[a.What] = a.Verdict()
	}
	if len(verdicts) != 2 || verdicts["10 keys: time × INCR"] != "missed" || verdicts["10 keys: time × redis_rate"] != "met" {
		t.Errorf("verdicts %v", verdicts)
	}
}

func TestAims(t *testing.T) {
	ours, theirs := peers.Contestant{Name: peers.WeirHeadline}, peers.Contestant{Name: peers.RedisRate}
	many, one, alone := Scenario{10_000, true, 128}, Scenario{1, true, 128}, Scenario{10_000, true, 1}
	measured := []Figure{
		{Contestant: ours, Scenario: many, Median: 4, ToIncr: 1.2, ToRedisRate: 0.36},
		{Contestant: peers.Contestant{Name: peers.WeirOnGoRedis}, Scenario: many, Median: 6.4},
		{Contestant: theirs, Scenario: many, ToIncr: 9, ToRedisRate: 1},
		{Contestant: ours, Scenario: one, ToIncr: 0.61},
		{Contestant: ours, Scenario: Scenario{1, false, 128}, ToIncr: 9},
		{Contestant: ours, Scenario: alone, P50: 43},
		{Contestant: theirs, Scenario: alone, P50: 40},
	}
	var b strings.Builder
	if err := writeAims(&b, measured, []Figure{{Contestant: ours, Scenario: Scenario{10_000, true, 4}, ToIncr: 1.2, ToRedisRate: 1.1}, {Contestant: theirs, Scenario: Scenario{10_000, true, 4}}}); err != nil {
		t.Fatal(err)
	}
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
