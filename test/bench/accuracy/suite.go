package accuracy

import (
	"fmt"
	"io"
	"sync"
)

// Kinds are all kinds of traffic. The limit of the first is such that only the
// heaviest sources meet it.
func Kinds(quick bool) []Traffic {
	if quick {
		return []Traffic{Zipf(2_000, 200_000, 60), Bursts(20, 40, 60), Sawtooth(20, 20, 60), Attack(64, 60)}
	}
	return []Traffic{Zipf(270_000, 40e6, 1000), Bursts(500, 100, 100), Sawtooth(1000, 20, 100), Attack(1000, 100)}
}

// Report judges every algorithm in every kind of traffic, and writes a table for
// each. What it writes depends on nothing but quick.
func Report(w io.Writer, quick bool, progress func(done, total int, what string)) error {
	kinds := Kinds(quick)
	done, total := 0, len(kinds[0].CountingLimits())
	for _, t := range kinds {
		total += len(t.Limits())
	}
	var mu sync.Mutex // algorithms finish side by side
	step := func(what string) func() {
		report := func() {
			if progress != nil {
				progress(done, total, what)
			}
		}
		report()
		return func() {
			mu.Lock()
			defer mu.Unlock()
			done++
			report()
		}
	}
	fmt.Fprint(w, heading)
	for i, t := range kinds {
		results, err := t.Run(t.Limits(), step(t.Name))
		if err != nil {
			return err
		}
		if err := WriteResults(w, t, t.Name, results); err != nil {
			return err
		}
		if i == 0 {
			title := t.Name + ", refused requests counted too"
			if results, err = t.Run(t.CountingLimits(), step(title)); err != nil {
				return err
			}
			fmt.Fprintln(w)
			if err := WriteResults(w, t, title, results); err != nil {
				return err
			}
			fmt.Fprintf(w, "\n%s\n", Published)
		}
		fmt.Fprintln(w)
	}
	return nil
}

const heading = `# How wrong is an estimate?

A request is judged wrongly if the answer differs from the exact one, given what
the same algorithm has admitted to the same source in the last period. Shares
are of all requests. A source that is held at its limit is at the edge with
every request, where a single unit makes an answer wrong; wrong answers that are
off by more than a hundredth of N are counted once more in a column of their own.

`
