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

func TestAsksNoticesWrongAnswers(t *testing.T) {
	keys, orders := bench.Keys(10), bench.NewOrders(2, 10, bench.Short)
	round := func(l Limiter, want Outcome) error {
		_, err := bench.Load{Callers: 2, Count: 1000}.Run(l.asks(keys, orders, want))
		return err
	}
	for _, answer := range []bool{true, false} {
		l := always(answer)
		if err := round(l, Outcome(answer)); err != nil {
			t.Errorf("all as wanted: %v", err)
		}
		if round(l, Outcome(!answer)) == nil {
			t.Errorf("a round in which every answer is %t passes as its opposite", answer)
		}
	}
	few := InMemory()[0].New(Limit{N: 50, Period: Month}, 10)
	defer few.Close()
	if round(few, Allowed) == nil {
		t.Error("a limit that is used up on the way passes as all allowed")
	}
}

func TestRun(t *testing.T) {
	r := bench.Test(t)
	h := run(r, options{keys: []int{1, 100}, callers: []int{1, 2}, rounds: 2, round: time.Millisecond})
	figures := 0
	for _, s := range h.stages {
		for i, name := range s.Names {
			if figures++; len(s.Rounds[i]) != 2 || s.Median(i, bench.Round.CallerNanos) <= 0 || s.ratio(name) <= 0 {
				t.Errorf("%s, %s: %+v", name, s.scenario, s.Rounds[i])
			}
		}
	}
	if want := 2 * 2 * 2 * (len(InMemory()) + 1); figures != want {
		t.Errorf("%d figures, want %d", figures, want)
	}
	tables, raw := r.File("peers.txt").String(), r.File("peers.jsonl")
	for _, c := range InMemory() {
		if got := strings.Count(tables, "| "+c.Name+" "); got < 6 {
			t.Errorf("%s is in %d of 6 tables", c.Name, got)
		}
	}
	if lines := bytes.Count(raw.Bytes(), []byte("\n")); lines != figures+len(h.sizes) {
		t.Errorf("%d raw lines for %d figures", lines, figures+len(h.sizes))
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
		if got := bytesOnHeap(c, keys, use).bytes; got < size || got > 2*size {
			t.Errorf("%s: %.0f bytes a key, of which %d are known", name, got, size)
		}
	}
}

// staged is a stage of contestants whose rounds had one check of each caller that took so long.
func staged(sc scenario, contestants []Contestant, walls ...[]time.Duration) stage {
	s := stage{scenario: sc, contestants: contestants}
	for i, c := range contestants {
		s.Names = append(s.Names, c.Name)
		var rounds []bench.Round
		for _, wall := range walls[i] {
			rounds = append(rounds, bench.Round{Callers: 1, Done: 1, Wall: wall, P50: wall})
		}
		s.Rounds = append(s.Rounds, rounds)
	}
	return s
}

func TestFiguresComparePeersOnly(t *testing.T) {
	contestants := []Contestant{{Name: "slow peer"}, {Name: "fast peer"}, {Name: "ours", Weir: true}, idle}
	s := staged(scenario{}, contestants, []time.Duration{300, 100, 200}, []time.Duration{99, 100, 900}, []time.Duration{50, 50, 50}, []time.Duration{1, 1, 1})
	for i, want := range []float64{2, 1, 0.5, 0.01} {
		if got := s.ratio(s.Names[i]); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: ratio %v, want %v", s.Names[i], got, want)
		}
	}
}
