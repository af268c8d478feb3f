package stats

import (
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/stats/archive"
)

// PrioritySummary is the traffic of requests of one priority.
type PrioritySummary struct {
	Priority rule.Priority
	Counts   archive.Counts
}

// prioritiesOf lists the priorities of a frame, unless all requests were normal.
func prioritiesOf(f *archive.Frame) []PrioritySummary {
	p := &f.Priorities
	if *p == (archive.Priorities{}) {
		return nil
	}
	return []PrioritySummary{{rule.Critical, p.Critical}, {rule.High, p.High}, {rule.Normal, p.Normal(f.Requests)}, {rule.Low, p.Low}}
}

// takePriorities moves what was counted into a frame.
func (r *Recorder) takePriorities(to *archive.Priorities) {
	by := map[rule.Priority]*archive.Counts{rule.Critical: &to.Critical, rule.High: &to.High, rule.Low: &to.Low}
	for i := range r.stripes {
		for p, counts := range by {
			for said := range outcomes {
				if at := &r.stripes[i].priorities[p][said]; at.Load() > 0 {
					counts.Add(outcomeCounts(said, at.Swap(0)))
				}
			}
		}
	}
}
