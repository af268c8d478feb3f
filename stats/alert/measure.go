package alert

import (
	"fmt"
	"strings"
	"time"
)

// finding is a value that is beyond its threshold.
type finding struct {
	subject string // whom it is about: a rule or a key
	rule    string // which one has to do with it
	value   float64
	text    string // a sentence
}

// measure returns for whom the condition of a check holds, as of the end of a bucket.
func (c *Check) measure(h history, now int64, hot *Hot) []finding {
	w := h.sum(now, c.Window)
	total := w.Requests.Total()
	if c.Kind == Drop {
		return c.drop(h, now, total)
	}
	if c.Kind == Errors {
		return c.share("", w.passed().Errors, w.passed().Requests, "%.1[1]f %% of requests to upstreams failed.")
	}
	if total < c.Minimum && c.Kind != HotKey {
		return nil
	}
	switch c.Kind {
	case Denied:
		return c.denied(&w)
	case DeniedRequests:
		if hot == nil || hot.All == 0 {
			return nil
		}
		rest := w.Requests.Denied * hot.Rest / hot.All
		return byRule(w.strictest(), c.share("", rest, total-w.Requests.Denied+rest, "%.1[1]f %% of requests are denied by limits, without those of the client with the most denials."))
	case Degraded:
		return c.share("", w.Requests.DegradedAllowed+w.Requests.DegradedDenied, total, "%.1[1]f %% of requests are decided without the store.")
	case Slow:
		return c.slow(h, now, w.Decision.Quantile(0.99))
	case HotKey:
		if hot != nil && hot.All >= c.Minimum {
			return byRule(w.strictest(), c.share(hot.Key, hot.Denied, hot.All, "The client %[2]q has %.1[1]f %% of all denials."))
		}
	case Shadow:
		var all []finding
		for line, counts := range w.Rules {
			if n := counts.Total(); n >= c.Minimum {
				all = append(all, c.share(line.Rule, counts.ShadowDenied, n, "The shadow rule %[2]s would deny %.1[1]f %% of its requests.")...)
			}
		}
		for i := range all {
			all[i].rule = all[i].subject
		}
		return all
	}
	return nil
}

// few is how many denied clients may be a single one: a client at its limit, which can have
// another key under another rule.
const few = 2

// denied weighs by clients, so that one client at its limit is not mistaken for limits that
// are too low. If no client is known, it weighs by requests.
func (c *Check) denied(w *bucket) []finding {
	all, denied := w.Clients.All.Count(), w.Clients.Denied.Count()
	if all == 0 {
		return byRule(w.strictest(), c.share("", w.Requests.Denied, w.Requests.Total(), "%.1[1]f %% of requests are denied by limits."))
	}
	value := float64(min(denied, all)) / float64(all)
	if denied <= few || value <= c.Threshold {
		return nil
	}
	return byRule(w.strictest(), []finding{{value: value, text: fmt.Sprintf("%d of %d clients (%.1f %%) are denied by limits.", min(denied, all), all, 100*value)}})
}

// byRule names the rule that denies most.
func byRule(id string, all []finding) []finding {
	for i := range all {
		if all[i].rule = id; id != "" {
			all[i].text = strings.TrimSuffix(all[i].text, ".") + "; most denials are by the rule " + id + "."
		}
	}
	return all
}

// share is a finding if the part is above the threshold. The text is a format of the
// share in percent, and of the subject.
func (c *Check) share(subject string, part, all int64, text string) []finding {
	if all < max(c.Minimum, 1) {
		return nil
	}
	if value := float64(part) / float64(all); value > c.Threshold {
		return []finding{{subject: subject, value: value, text: fmt.Sprintf(text, 100*value, subject)}}
	}
	return nil
}

// drop compares the traffic of the window with that just before.
func (c *Check) drop(h history, now, total int64) []finding {
	begin := now - int64(c.Window/time.Second)
	if !h.covers(begin - int64(c.Baseline/time.Second)) {
		return nil
	}
	before := h.sum(begin, c.Baseline).Requests.Total()
	usual := float64(before) * float64(c.Window) / float64(c.Baseline)
	if usual < float64(c.Minimum) {
		return nil
	}
	if value := float64(total) / usual; value < c.Threshold {
		return []finding{{value: value, text: fmt.Sprintf("Traffic dropped to %.0f %% of its previous level.", 100*value)}}
	}
	return nil
}

// slow compares the 99th percentile of the window with that of the time before.
func (c *Check) slow(h history, now int64, p99 time.Duration) []finding {
	begin := now - int64(c.Window/time.Second)
	if !h.covers(begin - int64(c.Baseline/time.Second)) {
		return nil
	}
	before := h.sum(begin, c.Baseline)
	if before.Requests.Total() < c.Minimum || p99 < slowFloor {
		return nil
	}
	usual := before.Decision.Quantile(0.99)
	if value := float64(p99) / float64(max(usual, 1)); value > c.Threshold {
		return []finding{{value: value, text: fmt.Sprintf("One decision in a hundred takes %v or longer; before, it was %v.", p99.Round(time.Microsecond), usual.Round(time.Microsecond))}}
	}
	return nil
}
