package accuracy

import (
	"github.com/weirhq/weir"
)

// Verdict is what was found out about one algorithm in one kind of traffic.
type Verdict struct {
	Sources, Requests int64
	Over              int64 // sources that were denied at least once
	OverRequests      int64 // the requests of those sources
	Allowed           int64
	FalselyAllowed    int64 // allowed, although N had been
	FalselyDenied     int64 // denied, although fewer had been
	Gross             int64 // of both, those that are off by more than a hundredth of N
	Most              int64 // units allowed to one source in any period
}

// gross is the error, as a fraction of N, beyond which a wrong answer is more
// than one that came a moment early or late.
const gross = 100

func (v *Verdict) add(other Verdict) {
	v.Sources += other.Sources
	v.Requests += other.Requests
	v.Over += other.Over
	v.OverRequests += other.OverRequests
	v.Allowed += other.Allowed
	v.FalselyAllowed += other.FalselyAllowed
	v.FalselyDenied += other.FalselyDenied
	v.Gross += other.Gross
	v.Most = max(v.Most, other.Most)
}

// judge compares the answers of a subject with its own exact log. It does not use
// weir's arithmetic, only a queue of times.
type judge struct {
	subject Subject
	n       int64
	period  weir.Micros

	// countDenied makes denied requests count as allowed ones do, for limits
	// that say so.
	countDenied bool

	log     queue // what counts
	granted queue // what was allowed, if more than that counts
	verdict Verdict
	source  Verdict // of the current source
}

// take sends one request to the subject and checks the answer.
func (j *judge) take(now weir.Micros) weir.Decision {
	j.log.dropUntil(now - j.period) // a unit taken at t stops counting at t+period
	counted := j.log.len()
	right := counted+1 <= j.n
	d := j.subject.Take(now)
	if d.Allowed || j.countDenied {
		j.log.push(now)
	}
	v := &j.source
	v.Requests++
	if d.Allowed {
		v.Allowed++
		v.Most = max(v.Most, j.allowed(now))
	} else {
		v.Over = 1
	}
	if d.Allowed == right {
		return d
	}
	off := counted + 1 - j.n
	if d.Allowed {
		v.FalselyAllowed++
	} else {
		v.FalselyDenied++
		off = -off
	}
	if off*gross > j.n {
		v.Gross++
	}
	return d
}

// allowed is how many units the source has got in the period that ends now,
// with a request that was just allowed.
func (j *judge) allowed(now weir.Micros) int64 {
	if !j.countDenied {
		return j.log.len()
	}
	j.granted.dropUntil(now - j.period)
	j.granted.push(now)
	return j.granted.len()
}

// next closes the account of a source.
func (j *judge) next() {
	j.source.Sources = 1
	if j.source.Over > 0 {
		j.source.OverRequests = j.source.Requests
	}
	j.verdict.add(j.source)
	j.source = Verdict{}
	j.log, j.granted = j.log[:0], j.granted[:0]
	j.subject.Forget()
}

// queue is times, oldest first.
type queue []weir.Micros

func (q *queue) len() int64         { return int64(len(*q)) }
func (q *queue) push(t weir.Micros) { *q = append(*q, t) }

// dropUntil removes the times up to t, t included.
func (q *queue) dropUntil(t weir.Micros) {
	for len(*q) > 0 && (*q)[0] <= t {
		*q = (*q)[1:]
	}
}
