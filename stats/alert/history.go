package alert

import (
	"strings"
	"time"

	"github.com/weirhq/weir/stats/archive"
)

// Hot is the key with the most denials in the last minute.
type Hot struct {
	Key    string
	Denied int64 // at least this many
	All    int64 // denials of all keys
	Rest   int64 // those that cannot all be of one client; see single
}

// single returns how many of all denials may be of a single client. A request counts for each of
// its keys, and a client may have a key of one kind in some requests and of another kind in
// others, such as an address and a user. So it is the most that the first key of a kind has,
// with that of another kind in the requests without a key of this kind.
func single(ranked []archive.Entry, all int64) (most int64) {
	type kind struct{ first, sum int64 }
	kinds := map[string]*kind{}
	for _, e := range ranked {
		name := e.Key[:max(0, strings.IndexAny(e.Key, ":="))] // of a rule, or of Envoy's descriptors
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

func (b *bucket) add(f *archive.Frame) {
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

// covers reports whether the history goes back so far.
func (h history) covers(from int64) bool { return len(h) > 0 && h[0].at <= from }
