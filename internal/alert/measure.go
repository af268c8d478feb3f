package alert

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/stats/archive"
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
		return byRule(w.strictest(), "; most denials are", c.share("", rest, total-w.Requests.Denied+rest, "%.1[1]f %% of requests are denied by limits, without those of the client with the most denials."))
	case Degraded:
		if h.recovered(now) {
			return nil
		}
		return c.share("", w.Requests.DegradedAllowed+w.Requests.DegradedDenied, total, "%.1[1]f %% of requests are decided without the store.")
	case Slow:
		return c.slow(h, now, w.Decision.Quantile(0.99))
	case HotKey:
		if hot != nil {
			return byRule(hot.Rule, ", most of them", c.share(hot.Key, hot.Denied, hot.All-hot.Decided, "The client %[2]q has %.1[1]f %% of all denials."))
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
		return byRule(w.strictest(), "; most denials are", c.share("", w.Requests.Denied, w.Requests.Total(), "%.1[1]f %% of requests are denied by limits."))
	}
	value := float64(min(denied, all)) / float64(all)
	if denied <= few || value <= c.Threshold {
		return nil
	}
	return byRule(w.strictest(), "; most denials are", []finding{{value: value, text: fmt.Sprintf("%d of %d clients (%.1f %%) are denied by limits.", min(denied, all), all, 100*value)}})
}

// byRule names the rule that denies most: all clients, or the one that the findings are about.
func byRule(id, most string, all []finding) []finding {
	for i := range all {
		if all[i].rule = id; id != "" {
			all[i].text = strings.TrimSuffix(all[i].text, ".") + most + " by the rule " + id + "."
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

// Hot is the key with the most denials in the last minute; see Accuse.
type Hot struct {
	Key     string // "" if there is none to act on
	Rule    string // which denied it most; "" if that is not known
	Denied  int64  // at least this many
	All     int64  // denials of all keys
	Decided int64  // those of clients about whom somebody has decided
	Rest    int64  // those that cannot all be of one client; see single
}

// single returns how many of all denials may be of a single client. A request counts for each of
// its keys, and a client may have a key of one kind in some requests and of another kind in
// others, such as an address and a user. So it is the most that the first key of a kind has,
// with that of another kind in the requests without a key of this kind.
func single(ranked []archive.Entry, all int64) (most int64) {
	type kind struct{ first, sum int64 }
	kinds := map[string]*kind{}
	for _, e := range ranked {
		name := kindOf(e.Key)
		if kinds[name] == nil {
			kinds[name] = &kind{first: e.Count}
		}
		kinds[name].sum += e.Count
	}
	for name, k := range kinds {
		other := int64(0)
		for another, o := range kinds {
			if another != name {
				other = max(other, o.first)
			}
		}
		most = max(most, k.first+max(0, min(other, all-k.sum)))
	}
	return min(most, all)
}

// Sample is the input of an evaluator, usually one second.
type Sample struct {
	Time  time.Time // start of the sample
	Frame *archive.Frame

	// Hot, if not nil, is the current hot key. It stays the same until the next sample
	// that sets it.
	Hot *Hot
}

// bucket is ten seconds, as far as checks look at them: rules without their tiers, and all
// routes together, under no name.
type bucket struct {
	at int64 // when it began, in Unix seconds
	archive.Frame
}

func (b *bucket) addFrame(f *archive.Frame) {
	b.Merge(&archive.Frame{Requests: f.Requests, Decision: f.Decision, Clients: f.Clients})
	for _, r := range f.Routes {
		b.passed().Requests += r.Requests
		b.passed().Errors += r.Errors
	}
	for line, counts := range f.Rules {
		b.Rule(archive.Line{Rule: line.Rule}).Add(*counts)
	}
}

// passed is what became of requests that were passed on.
func (b *bucket) passed() *archive.Route { return b.Route("") }

// history are the last buckets, the newest last. Buckets in which nothing happened are
// there, too.
type history []*bucket

// sum adds up the buckets that began in [to-length, to).
func (h history) sum(to int64, length time.Duration) bucket {
	from := to - int64(length/time.Second)
	var sum bucket
	for _, b := range h {
		if from <= b.at && b.at < to {
			sum.Merge(&b.Frame)
		}
	}
	return sum
}

// strictest is the rule that denies most; of several, the first by its name.
func (b *bucket) strictest() string {
	id, most := "", int64(0)
	for line, c := range b.Rules {
		if c.Denied > most || c.Denied == most && most > 0 && line.Rule < id {
			id, most = line.Rule, c.Denied
		}
	}
	return id
}

// recovered reports whether the store answers again: of the buckets before a time that tell, the
// newest has decisions of rules, and no request without the store. That older ones have some is
// no news then.
func (h history) recovered(now int64) bool {
	for _, b := range slices.Backward(h) {
		switch {
		case b.at >= now:
		case b.Requests.DegradedAllowed+b.Requests.DegradedDenied > 0:
			return false
		case len(b.Rules) > 0:
			return true
		}
	}
	return false
}

// covers reports whether the history goes back so far.
func (h history) covers(from int64) bool { return len(h) > 0 && h[0].at <= from }
