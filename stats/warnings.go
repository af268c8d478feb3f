package stats

import (
	"strings"
	"sync"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/stats/archive"
)

var _ engine.WarningObserver = (*Recorder)(nil)

// warned collects the warnings of a second: all are counted, and the first ones kept.
type warned struct {
	mu  sync.Mutex
	all archive.Warned
}

// ObserveWarning implements [engine.WarningObserver].
func (r *Recorder) ObserveWarning(w engine.Warning) {
	r.warned.mu.Lock()
	defer r.warned.mu.Unlock()
	all := &r.warned.all
	if all.N++; len(all.List) == archive.MaxWarnings {
		return
	}
	all.List = append(all.List, archive.Warning{
		At: r.options.Clock().UnixMicro(), Rule: w.Rule.ID, Key: strings.Clone(w.Key),
		Policy: w.Quota.Limit().Policy(), Threshold: int64(w.Threshold), Used: w.Used, Limit: w.Limit,
		ResetAt: int64(w.ResetAt), Instance: r.options.Instance[:min(len(r.options.Instance), maxInstance)],
	})
}

// take returns the warnings since the last call.
func (w *warned) take() archive.Warned {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = archive.Warned{}
	archive.SortWarnings(all.List)
	return all
}

// takeWarningsLocked adds the warnings to those of the ten seconds.
func (r *Recorder) takeWarningsLocked() {
	c := &r.collector
	if c.warned = r.warned.take(); c.warned.N > 0 {
		c.ranks.changed = true
		c.ranks.warned.Merge(&c.warned)
		c.ranks.warned.Trim()
	}
}
