package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/internal/notation"
	"github.com/weirhq/weir/rule"
)

// Instant is microseconds since the Unix epoch; in JSON it is a time of RFC 3339.
type Instant int64

// MarshalText writes it as people read it.
func (i Instant) MarshalText() ([]byte, error) {
	return []byte(i.time().Format("2006-01-02T15:04:05.999999Z")), nil
}

func (i Instant) time() time.Time { return time.UnixMicro(int64(i)).UTC() }

// Report is what would have happened. Its JSON form is meant for programs.
type Report struct {
	Logs      []string  `json:"logs"`
	Lines     int64     `json:"lines"`
	Bad       int64     `json:"bad_lines"` // that were not understood
	BadLines  []BadLine `json:"first_bad_lines,omitempty"`
	Reordered int64     `json:"reordered"` // lines that were put back into the order of time
	Late      int64     `json:"late"`      // lines that were too late for that, and checked when they came

	Requests int64   `json:"requests"`
	From     Instant `json:"from"`
	To       Instant `json:"to"`
	Allowed  int64   `json:"allowed"`
	Denied   int64   `json:"denied"`
	Exempt   int64   `json:"exempt"`     // of those allowed
	Free     int64   `json:"unlimited"`  // of those allowed: no rule applied
	Blocked  int64   `json:"blocked"`    // of those denied
	Delayed  int64   `json:"delayed"`    // of those allowed: for a while
	Longest  int64   `json:"longest_us"` // such while

	Rules []RuleReport `json:"rules"`
	Top   []Denied     `json:"top_denied"`
	Over  Over         `json:"over_time"`
	Notes []string     `json:"notes,omitempty"`

	series *series
	ids    []string
}

// RuleReport is what would have happened by one rule.
type RuleReport struct {
	ID          string        `json:"id"`
	Key         string        `json:"key"`
	Mode        rule.Mode     `json:"mode"`
	Limits      []string      `json:"limits"`
	Levels      []LevelReport `json:"levels,omitempty"` // from the top down, instead of Limits
	Applied     int64         `json:"applied"`          // requests
	Denied      int64         `json:"denied"`           // of those; or would have, in shadow mode
	Clients     int64         `json:"denied_clients"`   // at least, if ClientsMore
	ClientsMore bool          `json:"denied_clients_incomplete,omitempty"`
	Suggestions []Suggestion  `json:"suggestions,omitempty"`
}

// LevelReport is what would have happened by a level of a rule.
type LevelReport struct {
	Level   string   `json:"level"`
	Limits  []string `json:"limits"`
	Applied int64    `json:"applied"`
	Denied  int64    `json:"denied"`
}

// Denied is a client that would have been denied.
type Denied struct {
	Rule    string  `json:"rule"`
	Client  string  `json:"client"`
	Denied  int64   `json:"denied"`
	TooHigh int64   `json:"too_high_by_at_most,omitempty"`
	First   Instant `json:"first"`
	Last    Instant `json:"last"`
}

// Over is the same over time, in slices of equal length.
type Over struct {
	Begin    Instant            `json:"begin"`
	Slice    int64              `json:"slice_us"`
	Requests []int64            `json:"requests"`
	Denied   []int64            `json:"denied"`
	Rules    map[string][]int64 `json:"denied_by_rule"`
}

// report sums up.
func (r *replay) report() *Report {
	t := r.tally
	out := &t.Report
	out.Reordered, out.Allowed = r.order.reordered, t.Requests-t.Denied
	for _, l := range r.logs {
		out.Logs = append(out.Logs, l.name)
	}
	for i := range t.rules {
		out.ids = append(out.ids, t.rules[i].ID)
		out.Rules = append(out.Rules, t.rules[i].report(t.top, i, r.o.Shares))
	}
	for _, m := range t.top.most(r.o.Top) {
		out.Top = append(out.Top, Denied{out.ids[m.rule], m.client, m.count, m.tooHigh, Instant(m.first), Instant(m.last)})
	}
	out.Over = out.over(maxSlices)
	out.Notes = append(r.notes, r.remarks()...)
	return out
}

func (rt *ruleTally) report(t *top, i int, shares []float64) RuleReport {
	out := rt.RuleReport
	out.Clients, out.ClientsMore = t.rules[i], t.taken > 0
	for _, d := range rt.demands {
		to := &out.Limits
		if at := slices.IndexFunc(out.Levels, func(l LevelReport) bool { return l.Level == d.level }); at >= 0 {
			to = &out.Levels[at].Limits
		}
		*to = append(*to, d.limit.Limit().String())
		if d.requests > 0 {
			out.Suggestions = append(out.Suggestions, d.suggest(shares))
		}
	}
	return out
}

// over divides the time into at most so many slices.
func (r *Report) over(columns int) Over {
	s := r.series.fitted(columns)
	o := Over{Begin: Instant(s.begin), Slice: s.length(), Requests: s.offered, Denied: s.denied, Rules: make(map[string][]int64)}
	for i, counts := range s.rules {
		o.Rules[r.ids[i]] = counts
	}
	return o
}

// share is a part of a whole that may be nothing.
func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// WriteJSON writes the report as one JSON document.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// percent writes a share for people: 0.05 %, 7.8 %, 100 %.
func percent(share float64) string {
	p := share * 100
	digits := 1
	switch {
	case p > 0 && p < 0.001:
		return "< 0.001 %"
	case p > 99.9 && p < 100:
		return "> 99.9 %"
	case p < 0.1:
		digits = 3
	case p < 1:
		digits = 2
	}
	s := strconv.FormatFloat(p, 'f', digits, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + " %"
}

// remarks are what somebody should know before believing the figures.
func (r *replay) remarks() (notes []string) {
	t := r.tally
	if t.Requests == 0 {
		return append(notes, "there are no requests.")
	}
	if short := r.shortest(); t.whole && short > 0 && short < 10*time.Second {
		notes = append(notes, fmt.Sprintf("the log has only whole seconds, so all requests of a second count at the same time; the results for %s are too strict.", short))
	}
	if t.Late > 0 {
		notes = append(notes, fmt.Sprintf("%s arrived more than %s late, and counted at the time of the line before.", notation.Count(t.Late, "line"), r.o.Disorder))
	}
	if evicted := r.store.Stats().Evicted; evicted > 0 {
		note := fmt.Sprintf("memory was full, and weir dropped %s, so the results are too lenient; set --max-keys above %d", notation.Count(evicted, "client"), r.o.MaxKeys)
		notes = append(notes, r.o.plainly(note)+".")
	}
	ignored := func(is func(*rule.Entry) bool, format string) {
		var ids []string
		for i := range t.rules {
			if t.rules[i].Applied > 0 && is(t.rules[i].rule) {
				ids = append(ids, t.rules[i].ID)
			}
		}
		if len(ids) > 0 {
			notes = append(notes, fmt.Sprintf(format, strings.Join(ids[:min(len(ids), maxIdle)], ", ")))
		}
	}
	ignored((*rule.Entry).Concurrent, "the concurrency of %s was ignored, because a log does not say how long requests took.")
	ignored(func(c *rule.Entry) bool { return c.Tokens != nil }, "tokens are in no log, so each request counted as 1 for %s.")
	idle := 0
	for i := range t.rules {
		if why := t.idle(&t.rules[i], r.o.Host); why != "" {
			if idle++; idle > maxIdle {
				continue
			}
			notes = append(notes, fmt.Sprintf("%s applied to no request: %s.", t.rules[i].ID, r.o.plainly(why)))
		}
	}
	if idle > maxIdle {
		notes = append(notes, fmt.Sprintf("%s more applied to no request.", notation.Count(int64(idle-maxIdle), "rule")))
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
	if rt.Applied > 0 || rt.Mode == rule.Off {
		return ""
	}
	if len(rt.demands) == 0 && rt.rule.Concurrent() {
		return "it limits requests in flight, and a log does not say how long they took"
	}
	for _, source := range rt.rule.Key {
		switch {
		case source.Kind == rule.IP && t.addresses == 0:
			return "no line has the address of a client; set --ip-field"
		case source.Kind == rule.User && t.users == 0:
			return "no line has a user; set --user-field"
		}
	}
	if len(rt.rule.Match.Hosts) > 0 && t.hosts == 0 && host == "" {
		return "no line has a host; set --host-field or --host"
	}
	return "no request matched and had a value for its key"
}
