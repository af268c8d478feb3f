package replay

import (
	"fmt"
	"time"

	"github.com/weirhq/weir/rule"
)

// remarks are what somebody should know before believing the figures.
func (r *replay) remarks() (notes []string) {
	t := r.tally
	if t.requests == 0 {
		return append(notes, "there was no request at all.")
	}
	if short := r.shortest(); t.whole && short > 0 && short < 10*time.Second {
		notes = append(notes, fmt.Sprintf("the log has whole seconds only, so requests of one second count as simultaneous; limits for %s are judged too strictly.", short))
	}
	if t.late > 0 {
		notes = append(notes, fmt.Sprintf("%s came more than %s late, and counted at the time of the line before.", plural(t.late, "line"), r.o.Disorder))
	}
	if evicted := r.store.Stats().Evicted; evicted > 0 {
		notes = append(notes, fmt.Sprintf("%s had to be forgotten to make room for others; allow more than %d clients.", plural(evicted, "client"), r.o.MaxKeys))
	}
	idle := 0
	for i := range t.rules {
		if why := t.idle(&t.rules[i], r.o.Host); why != "" {
			if idle++; idle > maxIdle {
				continue
			}
			notes = append(notes, fmt.Sprintf("%s applied to no request: %s.", t.rules[i].rule.ID, why))
		}
	}
	if idle > maxIdle {
		notes = append(notes, fmt.Sprintf("%s more applied to no request.", plural(int64(idle-maxIdle), "rule")))
	}
	return notes
}

// maxIdle is how many rules are named that applied to nothing.
const maxIdle = 10

// shortest is the shortest period of a limit that applied to a request.
func (r *replay) shortest() (short time.Duration) {
	for i := range r.tally.rules {
		for _, d := range r.tally.rules[i].demands {
			if p := d.limit.Limit().Period; d.requests > 0 && (short == 0 || p < short) {
				short = p
			}
		}
	}
	return short
}

// idle says why a rule applied to nothing, if the log as a whole tells.
func (t *tally) idle(rt *ruleTally, host string) string {
	if rt.applied > 0 || rt.rule.Mode == rule.Off {
		return ""
	}
	for _, source := range rt.rule.Key {
		switch {
		case source.Kind == rule.IP && t.addresses == 0:
			return "no line has the address of a client; name its field with --ip-field"
		case source.Kind == rule.User && t.users == 0:
			return "no line has a user; name its field with --user-field"
		}
	}
	if len(rt.rule.Match.Hosts) > 0 && t.hosts == 0 && host == "" {
		return "no line has a host; name its field with --host-field, or the host with --host"
	}
	return "none matched, or had what it is keyed by"
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
