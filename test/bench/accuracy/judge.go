package accuracy

import "github.com/weirhq/weir"

// verdict is what was found out about one algorithm in one kind of traffic.
type verdict struct {
	sources, requests int64
	over              int64 // sources that were denied at least once
	overRequests      int64 // the requests of those sources
	allowed           int64
	falselyAllowed    int64 // allowed, although N had been
	falselyDenied     int64 // denied, although fewer had been
	gross             int64 // of both, those that are off by more than a hundredth of N
	most              int64 // units allowed to one source in any period
}

// gross is the error, as a fraction of N, beyond which a wrong answer is more
// than one that came a moment early or late.
const gross = 100

// judge compares the answers of a subject with its own exact log. It does not use
// weir's arithmetic, only a queue of times.
type judge struct {
	subject subject
	n       int64
	period  weir.Micros

	// countDenied makes denied requests count as allowed ones do, for limits
	// that say so.
	countDenied bool

	log     queue // what counts
	granted queue // what was allowed, if more than that counts
	verdict verdict
	asked   int64 // requests of the current source
	denied  bool  // at least one of these
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
	v := &j.verdict
	v.requests++
	j.asked++
	if d.Allowed {
		v.allowed++
		v.most = max(v.most, j.allowed(now))
	}
	j.denied = j.denied || !d.Allowed
	if d.Allowed == right {
		return d
	}
	off := counted + 1 - j.n
	if d.Allowed {
		v.falselyAllowed++
	} else {
		v.falselyDenied++
		off = -off
	}
	if off*gross > j.n {
		v.gross++
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
	j.verdict.sources++
	if j.denied {
		j.verdict.over++
		j.verdict.overRequests += j.asked
	}
	j.asked, j.denied = 0, false
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
