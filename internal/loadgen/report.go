package loadgen

import (
	"slices"
	"time"
)

// Bounds on what a report remembers, whatever the subject answers.
const (
	maxOutcomes = 32
	maxTexts    = 5
	maxText     = 300 // bytes
)

// Other is the outcome of calls that ended in more ways than a report remembers.
const Other = "other"

// Report is how a run went.
type Report struct {
	Elapsed time.Duration

	// Answered is how many calls ended without an error, and Outcomes in which ways.
	Answered int64
	Outcomes map[string]int64

	// Errors is how many calls ended with one, and Texts are the first few that
	// differ.
	Errors int64
	Texts  []string

	// Unfinished is how many calls were cut off at the end. If there are many, the
	// latencies look better than they were.
	Unfinished int64

	// Latency is how long the calls took that were answered.
	Latency Histogram
}

// Rate is how many calls were answered in a second.
func (r *Report) Rate() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Answered) / r.Elapsed.Seconds()
}

func (r *Report) add(t *tally) {
	if r.Outcomes == nil {
		r.Outcomes = map[string]int64{}
	}
	for outcome, n := range t.outcomes {
		r.Answered += n
		count(r.Outcomes, outcome, n)
	}
	for _, text := range t.texts {
		r.Texts = remember(r.Texts, text)
	}
	r.Errors += t.errors
	r.Unfinished += t.unfinished
	r.Latency.Merge(&t.latency)
}

// tally is what one worker has counted, by itself, so that none waits for another.
type tally struct {
	outcomes   map[string]int64
	errors     int64
	texts      []string
	unfinished int64
	latency    Histogram
}

func (t *tally) answered(outcome string, took time.Duration) {
	if t.outcomes == nil {
		t.outcomes = map[string]int64{}
	}
	count(t.outcomes, outcome, 1)
	t.latency.Record(took)
}

func (t *tally) failed(err error) {
	t.errors++
	t.texts = remember(t.texts, err.Error())
}

// count adds to an outcome, or to the others if there are too many.
func count(outcomes map[string]int64, outcome string, n int64) {
	if _, known := outcomes[outcome]; !known && len(outcomes) >= maxOutcomes {
		outcome = Other
	}
	outcomes[outcome] += n
}

// remember keeps the first few texts that differ.
func remember(texts []string, text string) []string {
	text = text[:min(len(text), maxText)]
	if len(texts) == maxTexts || slices.Contains(texts, text) {
		return texts
	}
	return append(texts, text)
}
