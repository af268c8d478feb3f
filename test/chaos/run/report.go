package run

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/test/chaos/check"
	"github.com/weirhq/weir/test/chaos/plan"
)

// Write writes the figures as a table, and then what was broken.
func (r *Report) Write(w io.Writer, seed uint64) {
	rows := [][]string{{""}, {"time"}, {"requests"}, {"allowed"}, {"denied"}, {"degraded"}, {"  by stalls of the machine only"}, {"not answered (weir down)"}, {"holds, in accounts, most of one"}, {"  read exactly, accounts not read"}, {"places in flight"}, {"of clients that move"}, {"  by so many imports"},
		{"longest answer beyond stalls"}, {"longest recovery"}, {"stalls of the machine, longest"}, {"allowed by leases, at least"}, {"goroutines, first and last"}, {"resident MB, first and last"}, {"faults"}}
	kinds := map[plan.Kind]bool{}
	for _, s := range r.Scenes {
		for k := range s.Faults {
			kinds[k] = true
		}
	}
	order := slices.Sorted(maps.Keys(kinds))
	for _, k := range order {
		rows = append(rows, []string{"  " + string(k)})
	}
	rows = append(rows, []string{"violations"})
	for _, s := range r.Scenes {
		t, faults := s.Tally, 0
		for _, n := range s.Faults {
			faults += n
		}
		column := []any{s.Topology, s.Took.Round(time.Second), t.Requests, t.Allowed, t.Denied, t.Degraded, t.Hiccups, t.Unanswered, fmt.Sprintf("%d, %d, %d", t.Holds, t.Accounts, t.Most), fmt.Sprintf("%d, %d", t.Exact, t.Unread), t.Places, t.Members, t.Moves,
			t.Longest.Round(time.Millisecond), t.Recovery.Round(time.Millisecond),
			fmt.Sprintf("%v, %v", s.Stalled.Round(time.Millisecond), s.Stall.Round(time.Millisecond)), local(s.Samples),
			firstAndLast(s.Samples, func(s check.Sample) int64 { return int64(s.Goroutines) }),
			firstAndLast(s.Samples, func(s check.Sample) int64 { return s.Resident >> 20 }), faults}
		for _, k := range order {
			column = append(column, s.Faults[k])
		}
		for i, cell := range append(column, len(s.Violations)+s.More) {
			rows[i] = append(rows[i], fmt.Sprint(cell))
		}
	}
	fmt.Fprint(w, notation.Grid(rows, 1))
	for _, s := range r.Scenes {
		s.writeViolations(w, seed)
	}
	attacks := [][]string{{"attack", "honest requests", "not answered", "longest answer"}}
	for _, a := range r.Attacks {
		attacks = append(attacks, []string{a.Attack, fmt.Sprint(a.Requests), fmt.Sprint(a.Failed), a.Longest.Round(time.Millisecond).String()})
	}
	if len(r.Attacks) > 0 {
		fmt.Fprintf(w, "\n%s", notation.Grid(attacks, 1))
	}
	for _, a := range r.Attacks {
		if a.Failed > 0 {
			fmt.Fprintf(w, "\nviolated by %s: %s\n", a.Attack, a.First)
		}
	}
}

// shown is how many violations of a scene are printed; the history has all.
const shown = 5

func (s *Scene) writeViolations(w io.Writer, seed uint64) {
	for _, v := range s.Violations[:min(shown, len(s.Violations))] {
		fmt.Fprintf(w, "\nviolated on %s, seed %d: %s\n  %s\n", s.Topology, seed, v.Promise, v.What)
		if v.Rule != "" {
			fmt.Fprintf(w, "  rule %s %s\n", v.Rule, v.Key)
		}
		fmt.Fprintf(w, "  from %v to %v\n", v.From.Round(time.Millisecond), v.To.Round(time.Millisecond))
		for _, f := range v.Faults {
			fmt.Fprintf(w, "  fault %v to %s: %s\n", f.From.Round(time.Millisecond), endOf(f.To), f.What)
		}
	}
	if n := len(s.Violations) + s.More; n > 0 {
		fmt.Fprintf(w, "\n%d violations on %s; the history is in %s\n", n, s.Topology, s.History)
	}
}

func endOf(t time.Duration) string {
	if t == check.Open {
		return "the end"
	}
	return t.Round(time.Millisecond).String()
}

// local is how many requests were allowed by leased units, as far as samples tell.
func local(samples []check.Sample) (sum int64) {
	most := map[[2]int]int64{}
	for _, s := range samples {
		life := [2]int{s.Instance, s.Life}
		most[life] = max(most[life], s.Local)
	}
	for _, n := range most {
		sum += n
	}
	return sum
}

// firstAndLast is of the instance that lives from the beginning to the end.
func firstAndLast(samples []check.Sample, of func(check.Sample) int64) string {
	samples = slices.DeleteFunc(slices.Clone(samples), func(s check.Sample) bool { return s.Instance != 0 })
	if len(samples) == 0 {
		return "-"
	}
	return fmt.Sprintf("%d → %d", of(samples[0]), of(samples[len(samples)-1]))
}

// save writes what is known of a scene in which something was broken: the violations, the
// faults, the samples and the last answers, a line of JSON each; with what the weirs wrote.
func save(s *scene, done *Scene) (string, error) {
	name := filepath.Join(s.options.Out, fmt.Sprintf("%d-%s", s.options.Seed, s.topology))
	if err := os.MkdirAll(s.options.Out, 0o755); err != nil {
		return "", err
	}
	file, err := os.Create(name + ".jsonl")
	if err != nil {
		return "", err
	}
	defer file.Close()
	w := bufio.NewWriter(file)
	lines := json.NewEncoder(w)
	for _, v := range done.Violations {
		lines.Encode(map[string]any{"violation": v})
	}
	for _, f := range s.line.Around(check.Span{From: 0, To: s.now()}) {
		lines.Encode(map[string]any{"fault": f})
	}
	for _, l := range s.line.Losses() {
		lines.Encode(map[string]any{"loss": l.Span, "masters": l.Lives})
	}
	for _, sample := range s.samples {
		lines.Encode(map[string]any{"sample": sample})
	}
	for _, a := range s.checker.History() {
		lines.Encode(map[string]any{"answer": a})
	}
	for _, i := range s.fleet {
		text, _ := os.ReadFile(i.log)
		for line := range strings.Lines(string(text)) {
			lines.Encode(map[string]any{"instance": i.number, "log": strings.TrimSpace(line)})
		}
	}
	return file.Name(), w.Flush()
}

// progress says how far a run is, now and then.
type progress struct {
	Options
	begun, last time.Time
}

const tellEvery = 20 * time.Second

// tell says what a scene does now.
func (p *progress) tell(s *scene, doing string) {
	if p.Progress != nil && time.Since(p.last) >= tellEvery {
		p.last = time.Now()
		fmt.Fprintf(p.Progress, "%7s of %v  %s\n", time.Since(p.begun).Round(time.Second), p.Duration, s.summary(doing))
	}
}

// summary is a scene in a line.
func (s *scene) summary(doing string) string {
	if s.checker == nil {
		return fmt.Sprintf("%-8s  %s", s.topology, doing)
	}
	tally, violations, more := s.checker.Result()
	faults := 0
	for _, n := range s.faults {
		faults += n
	}
	return fmt.Sprintf("%-8s  %6d requests  %3d faults  %d violations  %s", s.topology, tally.Requests, faults, len(violations)+more, doing)
}
