package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit"
)

// contestants note who plays.
func contestants(names string, played *strings.Builder) (out []Contestant) {
	for _, name := range strings.Split(names, "") {
		out = append(out, Contestant{Name: name, Play: func(n int) (Round, error) {
			played.WriteString(name)
			return Round{Done: n}, nil
		}})
	}
	return out
}

func TestContestantsTakeTurns(t *testing.T) {
	var played strings.Builder
	got := Contest{What: "x", Rounds: 5, Contestants: contestants("abcd", &played)}.Run(Test(t))
	for i, rounds := range got.Rounds {
		for n, r := range rounds {
			if r.Done != n || len(rounds) != 5 {
				t.Errorf("contestant %d has the rounds %+v", i, rounds)
			}
		}
	}
	orders := map[string]bool{}
	for round := range slices.Chunk([]byte(played.String()), 4) {
		orders[string(round)] = true
		if slices.Sort(round); string(round) != "abcd" {
			t.Errorf("a round of %s", round)
		}
	}
	if len(orders) < 2 {
		t.Errorf("all rounds have the same order, %v", orders)
	}
}

func TestContestStopsAtAnError(t *testing.T) {
	scope, turns := testkit.Must(testkit.NewScope("take"))(t), 0
	defer scope.Close()
	broken := Contestant{Name: "a", Play: func(int) (Round, error) { turns++; return Round{}, errors.New("broken") }}
	err := scope.Try(func() { Contest{What: "x", Rounds: 2, Contestants: []Contestant{broken, broken}}.Run(Test(scope)) })
	if err == nil || err.Error() != "take: x: a: broken" || turns != 1 {
		t.Errorf("%v after %d turns", err, turns)
	}
}

// Those who ask do it after a warm-up and a trial, in rounds of equal counts; what comes before a
// round is not measured, and the processor time is that of the round.
func TestContestOfCallers(t *testing.T) {
	var asked atomic.Int64
	before, busy := 0, time.Duration(0)
	one := Contestant{
		Name:   "a",
		Ask:    func(int) func(int) error { return func(int) error { asked.Add(1); return nil } },
		Before: func() error { before++; return nil },
		Busy:   func() time.Duration { busy += time.Second; return busy },
	}
	got := Contest{What: "x", Rounds: 3, WarmUp: time.Millisecond, Load: Load{Callers: 2, Length: time.Microsecond, Counted: true}, Contestants: []Contestant{one}}.Run(Test(t))
	for _, r := range got.Rounds[0] {
		if r.Done != 2*trial || r.CPU != time.Second {
			t.Errorf("%+v", r)
		}
	}
	if before != 3 || asked.Load() <= 4*2*trial || got.Sum(0).Done != 3*2*trial {
		t.Errorf("%d rounds were prepared; %d requests", before, asked.Load())
	}
}

func TestMedian(t *testing.T) {
	for want, rounds := range map[float64][]float64{7: {7}, 2: {900, 1, 2}, 5: {5, 5, 1, 9, 3}} {
		if got := Median(rounds, func(x float64) float64 { return x }); got != want {
			t.Errorf("the median of %v is %v, not %v", rounds, got, want)
		}
	}
}

// A round in which both are slow does not change how they compare.
func TestRatio(t *testing.T) {
	var s Scores
	for _, walls := range [][]time.Duration{{20, 2, 60, 8}, {10, 1, 20, 4}} {
		var rounds []Round
		for _, wall := range walls {
			rounds = append(rounds, Round{Wall: wall})
		}
		s.Rounds = append(s.Rounds, rounds)
	}
	if got := s.Ratio(0, 1, Round.Seconds); got != 2 {
		t.Errorf("the ratio is %v", got)
	}
}

func TestAtOnceWaitsForAll(t *testing.T) {
	var sum atomic.Int64
	cost := AtOnce(10, func(g int) { sum.Add(int64(g)) })
	if sum.Load() != 45 || cost.Wall <= 0 {
		t.Errorf("the sum is %d after %v", sum.Load(), cost.Wall)
	}
}

func TestKeysAreDistinct(t *testing.T) {
	const n = 100_000
	seen := make(map[string]struct{}, n)
	for _, key := range Keys(n) {
		seen[key] = struct{}{}
	}
	if _, ok := seen[""]; ok || len(seen) != n {
		t.Errorf("%d distinct keys of %d, an empty one: %t", len(seen), n, ok)
	}
}

func TestOrderVisitsTheKeys(t *testing.T) {
	for keys, least := range map[int]int{1: 1, 1000: 1000, 100_000: 60_000} {
		seen, order := make(map[int]struct{}), NewOrder(0, keys, 1<<17)
		for n := range 1 << 17 {
			i := order.At(n)
			if i >= keys {
				t.Fatalf("an order of %d keys goes to %d", keys, i)
			}
			seen[i] = struct{}{}
		}
		if len(seen) < least || order.At(1<<17+7) != order.At(7) {
			t.Errorf("an order of %d keys visits only %d of them, or does not begin again", keys, len(seen))
		}
	}
	if both := NewOrders(2, 1000, 1000); slices.Equal(both[0], both[1]) {
		t.Error("two goroutines walk in step")
	}
}

// The worst of several measurements is what an aim is held against.
func TestWorst(t *testing.T) {
	for _, atLeast := range []bool{true, false} {
		a := Aim{AtLeast: atLeast}
		for where, measured := range map[string]float64{"low": 1, "high": 3, "middle": 2} {
			a.Worst(measured, where)
		}
		if want := map[bool]string{true: "low", false: "high"}[atLeast]; a.Where != want {
			t.Errorf("%+v, want %s", a, want)
		}
	}
}

// A process that works for a while was busy for about as long: of what the clock says,
// on a machine that others use as well, no more than all processors have.
func TestCPU(t *testing.T) {
	if _, err := CPU(-1); err == nil {
		t.Error("there is a process -1")
	}
	if runtime.GOOS != "linux" {
		return // unknown elsewhere, as reported above
	}
	before, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for used := time.Duration(0); used < 100*time.Millisecond; {
		now, err := CPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		used = now - before
		if passed := time.Since(begin); passed > time.Minute || used > time.Duration(runtime.NumCPU())*passed+2*tick {
			t.Fatalf("it was busy for %v of %v", used, passed)
		}
	}
}

func TestWrite(t *testing.T) {
	table := NewTable("who", "ns", "<why")
	table.Row("a|%d|short", 1)
	table.Cells([]string{"bé", "1 000", "x"})
	r := Test(t)
	r.Write("a", "Title", table, "End\n")
	want := `
Title

| who |    ns | why   |
|-----|------:|-------|
| a   |     1 | short |
| bé  | 1 000 | x     |

End
`
	if b := r.File("a"); b.String() != want[1:] {
		t.Errorf("got\n%s", b)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1 000", 1234567: "1 234 567"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestMemoryOf(t *testing.T) {
	m, err := MemoryOf(os.Getpid())
	if err != nil || m.Own <= 0 || m.Own > m.Resident {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := MemoryOf(-1); err == nil {
		t.Error("no error for a process that does not exist")
	}
}

// Every caller asks as often as it is to, or until the time is over and at least once.
func TestLoad(t *testing.T) {
	var asked atomic.Int64
	count := func(int) func(int) error { return func(int) error { asked.Add(1); return nil } }
	if r, err := (Load{Callers: 3, Count: 7}).Run(count); err != nil || r.Done != 21 || asked.Load() != 21 || r.P99 != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := (Load{Callers: 2, Timed: true}).Run(count); err != nil || r.Done < 2 || int64(r.Done) != asked.Load()-21 || r.P50 <= 0 || r.P99 < r.P50 {
		t.Errorf("%+v, %v", r, err)
	}
	broken := errors.New("broken")
	if _, err := (Load{Callers: 2, Length: time.Hour}).Run(func(g int) func(int) error {
		return func(n int) error {
			if n == 5 {
				return broken
			}
			return nil
		}
	}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestRunner(t *testing.T) {
	dir := t.TempDir()
	out, said := testkit.Must(os.Create(filepath.Join(dir, "out")))(t), testkit.Must(os.Create(filepath.Join(dir, "said")))(t)
	suites := []Suite{
		{Name: "good", Files: []string{"a.txt", "b.txt"}, Run: func(r *Run) {
			r.Step(0, 1, "measuring")
			fmt.Fprint(r.File("a.txt"), Pick(r, "full", "quick"))
			fmt.Fprint(r.File("b.txt"), "more")
		}},
		{Name: "many", Files: []string{"d.txt"}, Clients: 7, Run: func(r *Run) { fmt.Fprintf(r.File("d.txt"), "-%d clients-", r.Clients) }},
		{Name: "bad", Files: []string{"c.txt"}, Run: func(r *Run) { r.Fatal("no luck") }},
	}
	for _, c := range []struct {
		want int
		args []string
	}{
		{0, []string{"good", "-quick", "-results", filepath.Join(dir, "results")}}, {0, []string{"good", "-results", ""}}, {0, []string{"-h"}},
		{1, []string{"bad", "-results", dir}}, {2, nil}, {2, []string{"other"}}, {2, []string{"good", "-other"}}, {2, []string{"good", "bad"}}, {2, []string{"good", "-beside", dir}},
		{0, []string{"many", "-results", ""}}, {0, []string{"many", "-results", "", "-clients", "9"}},
		{2, []string{"good", "-clients", "9"}}, {2, []string{"many", "-clients", "-1"}}, {2, []string{"many", "-clients", "10000001"}},
	} {
		if got := Main(suites, c.args, out, said); got != c.want {
			t.Errorf("%v: %d, want %d", c.args, got, c.want)
		}
	}
	for name, want := range map[string]string{"results/a.txt": "quick", "results/b.txt": "more", "out": "quickfull-7 clients--9 clients-"} {
		if got := testkit.Must(os.ReadFile(filepath.Join(dir, name)))(t); string(got) != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	text := string(testkit.Must(os.ReadFile(filepath.Join(dir, "said")))(t))
	if !strings.Contains(text, "no luck") || !strings.Contains(text, "0/1 measuring") || !strings.Contains(text, "Usage") {
		t.Error(text)
	}
	if _, err := os.Stat(filepath.Join(dir, "c.txt")); err == nil {
		t.Error("a run that failed leaves a file")
	}
}

func TestWriteLine(t *testing.T) {
	r := Test(t)
	r.WriteLine(r.File("a"), "kind", "x", "rounds", []int{1, 2})
	if got, want := r.File("a").String(), `{"kind":"x","rounds":[1,2],"go":"go`; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "}\n") {
		t.Errorf("%s", got)
	}
}
