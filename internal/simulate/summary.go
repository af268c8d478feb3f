package simulate

import (
	"fmt"
	"strings"

	"github.com/weirhq/weir/internal/duration"
)

// summarize says in one sentence what is to be seen: who let too much through,
// or else who refused how much.
func (r *Report) summarize() string {
	n := r.limit.N
	within := "within " + duration.Format(r.limit.Period)
	if r.Keys > 1 {
		within += " for one key"
	}
	worst := int64(0)
	least, most := r.Lanes[0].Admitted, int64(0)
	for _, l := range r.Lanes {
		worst = max(worst, l.Worst)
		least, most = min(least, l.Admitted), max(most, l.Admitted)
	}
	everyone := "Every algorithm"
	if len(r.Lanes) == 1 {
		everyone = r.Lanes[0].Name
	}
	switch {
	case worst > n:
		s := fmt.Sprintf("%s let %s through %s; the limit says %d",
			r.lanes(func(l *Result) bool { return l.Worst == worst }), plural(worst, "unit"), within, n)
		if kept := r.lanes(func(l *Result) bool { return l.Worst <= n }); kept != "" {
			s += ", which " + kept + " kept"
		}
		return s + "."
	case least == r.Offered:
		return fmt.Sprintf("%s admitted all of the traffic, at most %s %s: it stays within the limit.",
			everyone, plural(worst, "unit"), within)
	case least == most:
		return fmt.Sprintf("%s admitted %d of %s, at most %d %s.",
			everyone, least, plural(r.Offered, "unit"), worst, within)
	}
	return fmt.Sprintf("%s kept to %d %s; of %s, %s admitted the most, %d, and %s the least, %d.",
		everyone, n, within, plural(r.Offered, "unit"),
		r.lanes(func(l *Result) bool { return l.Admitted == most }), most,
		r.lanes(func(l *Result) bool { return l.Admitted == least }), least)
}

// lanes lists the names of some lanes as prose.
func (r *Report) lanes(some func(*Result) bool) string {
	var names []string
	for i := range r.Lanes {
		if some(&r.Lanes[i]) {
			names = append(names, r.Lanes[i].Name)
		}
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
