package peers

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/test/bench/internal/bench"
)

// The harness's own keys, with the check that every peer has to pass.
func TestContestantsLimitTheKeysOfTheHarness(t *testing.T) {
	for _, c := range InMemory() {
		l := c.New(Limit{N: 3, Period: Month}, 100)
		if err := prove(l, 3, bench.Keys(100)); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		l.Close()
	}
}

func TestRoundNoticesWrongAnswers(t *testing.T) {
	keys, walks := bench.Keys(10), [][]uint32{bench.Walk(0, 10, walkLen), bench.Walk(1, 10, walkLen)}
	for _, answer := range []bool{true, false} {
		l := always(answer)
		if _, err := round(l, keys, walks, 1000, Outcome(answer)); err != nil {
			t.Errorf("all as wanted: %v", err)
		}
		if _, err := round(l, keys, walks, 1000, Outcome(!answer)); err == nil {
			t.Errorf("a round in which every answer is %t passes as its opposite", answer)
		}
	}
	few := InMemory()[0].New(Limit{N: 50, Period: Month}, 10)
	defer few.Close()
	if _, err := round(few, keys, walks, 1000, true); err == nil {
		t.Error("a limit that is used up on the way passes as all allowed")
	}
}

func TestRun(t *testing.T) {
	r := bench.Test(t)
	results := measure(r, options{keys: []int{1, 100}, procs: []int{1, 2}, rounds: 2, round: time.Millisecond, trial: 200, limit: time.Minute})
	if want := 2 * 2 * 2 * (len(InMemory()) + 1); len(results.figures) != want {
		t.Fatalf("%d figures, want %d", len(results.figures), want)
	}
	for _, f := range results.figures {
		if len(f.Rounds) != 2 || f.Median <= 0 || f.Ratio <= 0 {
			t.Errorf("%s, %s: %+v", f.Contestant.Name, f.scenario, f.Rounds)
		}
	}
	results.write(r)
	tables, raw := r.File("peers.txt").String(), r.File("peers.jsonl")
	for _, c := range InMemory() {
		if got := strings.Count(tables, "| "+c.Name+" "); got < 6 {
			t.Errorf("%s is in %d of 6 tables", c.Name, got)
		}
	}
	if lines := bytes.Count(raw.Bytes(), []byte("\n")); lines != len(results.figures)+len(results.sizes) {
		t.Errorf("%d raw lines for %d figures", lines, len(results.figures)+len(results.sizes))
	}
	var line struct {
		Go, Kind, Outcome string
		Rounds            []float64 `json:"rounds_ns"`
	}
	if err := json.NewDecoder(raw).Decode(&line); err != nil || line.Go == "" || line.Kind != "check" || line.Outcome != "allowed" || len(line.Rounds) != 2 {
		t.Errorf("first raw line: %+v, %v", line, err)
	}
}

// Most contestants have nothing to stop, so nothing but the measurement itself keeps their
// memory until it is counted.
func TestBytesOfAKey(t *testing.T) {
	const size = 4096
	c := Contestant{New: func(Limit, int) Limiter {
		kept := map[string]*[size]byte{}
		use := func(key string) bool {
			kept[key] = new([size]byte)
			return true
		}
		return Limiter{Take: use, Drain: func(key string) { use(key) }}
	}}
	keys := bench.Keys(100)
	for name, use := range map[string]func(Limiter, string){
		"once":      func(l Limiter, key string) { l.Take(key) },
		"exhausted": func(l Limiter, key string) { l.Drain(key) },
	} {
		if got := bytesPerKey(c, keys, use); got < size || got > 2*size {
			t.Errorf("%s: %.0f bytes a key, of which %d are known", name, got, size)
		}
	}
}

func TestFiguresComparePeersOnly(t *testing.T) {
	contestants := []Contestant{{Name: "slow peer"}, {Name: "fast peer"}, {Name: "ours", Weir: true}, idle}
	var rounds [][]bench.Round
	for _, ns := range [][]time.Duration{{300, 100, 200}, {99, 100, 900}, {50, 50, 50}, {1, 1, 1}} {
		var some []bench.Round
		for _, wall := range ns {
			some = append(some, bench.Round{Callers: 1, Done: 1, Wall: wall})
		}
		rounds = append(rounds, some)
	}
	got := figures(contestants, scenario{}, 1, bench.Results[bench.Round]{Rounds: rounds})
	for i, want := range []float64{2, 1, 0.5, 0.01} {
		if math.Abs(got[i].Ratio-want) > 1e-9 {
			t.Errorf("%s: ratio %v, want %v", got[i].Contestant.Name, got[i].Ratio, want)
		}
	}
}
