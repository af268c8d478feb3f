package alert

import (
	"time"

	"github.com/weirhq/weir/stats/frame"
)

// Hot is the key with most denials of the last minute.
type Hot struct {
	Key    string
	Denied int64 // at least
	All    int64 // denials of all keys
}

// Sample is what an evaluator is told: a second, as a rule.
type Sample struct {
	Time  time.Time // when it began
	Frame *frame.Frame

	// Hot, if not nil, is the hot key as of now. It stays so until it is told anew.
	Hot *Hot
}

// bucket is ten seconds, as far as checks look at them.
type bucket struct {
	at       int64 // when it began, in Unix seconds
	requests frame.Counts
	decision frame.Histogram
	passed   frame.Route // upstream, all routes
	rules    map[string]frame.Counts
	clients  frame.Clients
}

func (b *bucket) add(f *frame.Frame) {
	b.requests.Add(f.Requests)
	b.decision.Merge(&f.Decision)
	b.clients.Merge(&f.Clients)
	for _, r := range f.Routes {
		b.passed.Requests += r.Requests
		b.passed.Errors += r.Errors
	}
	for line, counts := range f.Rules {
		if b.rules == nil {
			b.rules = map[string]frame.Counts{}
		}
		sum := b.rules[line.Rule]
		sum.Add(*counts)
		b.rules[line.Rule] = sum
	}
}

// history are the last buckets, the newest last. Buckets in which nothing happened are
// there, too.
type history []*bucket

// sum adds up the buckets that began in [to-length, to).
func (h history) sum(to int64, length time.Duration) bucket {
	from := to - int64(length/time.Second)
	var sum bucket
	for _, b := range h {
		if b.at < from || b.at >= to {
			continue
		}
		sum.requests.Add(b.requests)
		sum.decision.Merge(&b.decision)
		sum.clients.Merge(&b.clients)
		sum.passed.Requests += b.passed.Requests
		sum.passed.Errors += b.passed.Errors
		for id, counts := range b.rules {
			if sum.rules == nil {
				sum.rules = map[string]frame.Counts{}
			}
			all := sum.rules[id]
			all.Add(counts)
			sum.rules[id] = all
		}
	}
	return sum
}

// strictest is the rule that denies most; of several, the first by its name.
func (b *bucket) strictest() string {
	id, most := "", int64(0)
	for name, c := range b.rules {
		if c.Denied > most || c.Denied == most && most > 0 && name < id {
			id, most = name, c.Denied
		}
	}
	return id
}

// covers reports whether the history goes back so far.
func (h history) covers(from int64) bool { return len(h) > 0 && h[0].at <= from }
