package memory

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/test/bench/internal/clients"
	"github.com/weirhq/weir/test/bench/internal/machine"
	"github.com/weirhq/weir/test/bench/peers"
)

// The harness's own keys, with the check that every peer has to pass.
func TestContestantsLimitTheKeysOfTheHarness(t *testing.T) {
	for _, c := range peers.InMemory() {
		l := c.New(peers.Limit{N: 3, Period: peers.Month}, 1000)
		if err := peers.Check(l, 3, clients.Keys(1000)); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		l.Close()
	}
}

func TestRoundNoticesWrongAnswers(t *testing.T) {
	keys, walks := clients.Keys(10), [][]uint32{clients.Walk(0, 10, walkLen), clients.Walk(1, 10, walkLen)}
	for _, answer := range []bool{true, false} {
		l := always(answer)
		if _, err := runRound(l, keys, walks, 1000, peers.Outcome(answer)); err != nil {
			t.Errorf("all as wanted: %v", err)
		}
		if _, err := runRound(l, keys, walks, 1000, peers.Outcome(!answer)); err == nil {
			t.Errorf("a round in which every answer is %t passes as its opposite", answer)
		}
	}
	few := peers.InMemory()[0].New(peers.Limit{N: 50, Period: peers.Month}, 10)
	defer few.Close()
	if _, err := runRound(few, keys, walks, 1000, true); err == nil {
		t.Error("a limit that is used up on the way passes as all allowed")
	}
}

func TestRunAndReport(t *testing.T) {
	o := Options{Keys: []int{1, 100}, Procs: []int{1, 2}, Rounds: 3, Round: time.Millisecond, Trial: 500, Limit: time.Minute}
	results := Run(t, o, func(int, int, string) {})
	figures, sizes := results.Figures, results.Sizes
	if want := 2 * 2 * 2 * (len(peers.InMemory()) + 1); len(figures) != want {
		t.Fatalf("%d figures, want %d", len(figures), want)
	}
	for _, f := range figures {
		if len(f.Rounds) != 3 || f.Median <= 0 || f.Ratio <= 0 {
			t.Errorf("%s, %s: %+v", f.Contestant.Name, f.Scenario, f.Rounds)
		}
	}
	var tables, raw bytes.Buffer
	if err := results.WriteTables(&tables, machine.Describe()); err != nil {
		t.Fatal(err)
	}
	if err := results.WriteRaw(&raw, machine.Describe()); err != nil {
		t.Fatal(err)
	}
	for _, c := range peers.InMemory() {
		if got := strings.Count(tables.String(), "| "+c.Name+" "); got < 5 {
			t.Errorf("%s is in %d of 5 tables", c.Name, got)
		}
	}
	if lines := bytes.Count(raw.Bytes(), []byte("\n")); lines != len(figures)+len(sizes) {
		t.Errorf("%d raw lines for %d figures", lines, len(figures)+len(sizes))
	}
	var line struct {
		Go     string
		Rounds []float64 `json:"rounds_ns"`
	}
	if err := json.NewDecoder(&raw).Decode(&line); err != nil || line.Go == "" || len(line.Rounds) != 3 {
		t.Errorf("first raw line: %+v, %v", line, err)
	}
}

// Most contestants have nothing to stop, so nothing but the measurement itself keeps their
// memory until it is counted.
func TestBytesOfAKey(t *testing.T) {
	const size = 4096
	c := peers.Contestant{New: func(peers.Limit, int) peers.Limiter {
		kept := map[string]*[size]byte{}
		use := func(key string) bool {
			kept[key] = new([size]byte)
			return true
		}
		return peers.Limiter{Take: use, Drain: func(key string) { use(key) }}
	}}
	keys := clients.Keys(1000)
	for name, use := range map[string]func(peers.Limiter, string){
		"once":      func(l peers.Limiter, key string) { l.Take(key) },
		"exhausted": func(l peers.Limiter, key string) { l.Drain(key) },
	} {
		if got := bytesPerKey(c, keys, use); got < size || got > 2*size {
			t.Errorf("%s: %.0f bytes a key, of which %d are known", name, got, size)
		}
	}
}

func TestFiguresComparePeersOnly(t *testing.T) {
	contestants := []peers.Contestant{{Name: "slow peer"}, {Name: "fast peer"}, {Name: "ours", Weir: true}, idle()}
	rounds := [][]round{{{ns: 300}, {ns: 100}, {ns: 200}}, {{ns: 99}, {ns: 100}, {ns: 900}}, {{ns: 50}, {ns: 50}, {ns: 50}}, {{ns: 1}, {ns: 1}, {ns: 1}}}
	got := figures(contestants, Scenario{}, 1, rounds)
	for i, want := range []float64{2, 1, 0.5, 0.01} {
		if got[i].Ratio != want {
			t.Errorf("%s: ratio %v, want %v", got[i].Contestant.Name, got[i].Ratio, want)
		}
	}
}
