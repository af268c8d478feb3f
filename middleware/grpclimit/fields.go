package grpclimit

import (
	"math/bits"
	"strconv"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
)

// Headers are families of metadata in the answer.
type Headers uint8

const (
	// XRateLimit is x-ratelimit-limit, -remaining and -reset, in units and Unix
	// seconds, and x-ratelimit-degraded: 1 when the store could not be asked.
	XRateLimit Headers = 1 << iota

	// RateLimit is ratelimit-policy and ratelimit, the structured fields of
	// draft-ietf-httpapi-ratelimit-headers.
	RateLimit

	// RetryAfter is retry-after, in seconds, of a call that was refused.
	RetryAfter

	// NoHeaders switches all of them off.
	NoHeaders

	AllHeaders = XRateLimit | RateLimit | RetryAfter
)

// maxPolicies bounds what grows with the rules: clients accept only so much metadata.
const maxPolicies = 16

// fieldsOf are the metadata that a verdict of some time ago gives rise to, of a call
// that has to wait if it was refused. They mean what the headers of HTTP mean.
func fieldsOf(v *engine.Verdict, now time.Time, age, wait time.Duration, families Headers) metadata.MD {
	md := make(metadata.MD)
	speaker := v.Speaker()
	if families&XRateLimit != 0 && speaker != nil {
		md["x-ratelimit-limit"] = []string{strconv.FormatInt(speaker.Decision.Limit, 10)}
		md["x-ratelimit-remaining"] = []string{strconv.FormatInt(speaker.Remaining, 10)}
		reset := now.Add(speaker.ResetAfter + time.Second - 1).Unix() // rounded up
		md["x-ratelimit-reset"] = []string{strconv.FormatInt(reset, 10)}
	}
	if families&XRateLimit != 0 && v.Degraded != nil {
		md["x-ratelimit-degraded"] = []string{"1"}
	}
	if families&RateLimit != 0 && speaker != nil {
		until := wait
		if until == 0 {
			until = speaker.ResetAfter - age
		}
		var room [128]byte
		text := append(append(append(room[:0], '"'), nameOf(v, speaker)...), '"')
		text = parameter(parameter(text, 'r', speaker.Remaining), 't', seconds(until))
		md["ratelimit"] = []string{string(text)}
		md["ratelimit-policy"] = []string{policiesOf(v, speaker)}
	}
	if families&RetryAfter != 0 && wait > 0 {
		md["retry-after"] = []string{strconv.FormatInt(seconds(wait), 10)}
	}
	return md
}

// policiesOf lists the limits that were asked, in the order of the rules; the one that
// speaks is always among them.
func policiesOf(v *engine.Verdict, speaker *engine.Result) string {
	var room [512]byte
	text, n, spoken := room[:0], 0, false
	for i := range v.Results {
		r := &v.Results[i]
		spoken = spoken || r == speaker
		full := n == maxPolicies || n == maxPolicies-1 && !spoken // the last place is the speaker's
		if r.Shadow || !r.Asked || full {
			continue
		}
		if n++; n > 1 {
			text = append(text, ", "...)
		}
		text = append(append(append(text, '"'), nameOf(v, r)...), '"')
		text = parameter(text, 'q', r.Limit.Capacity())
		if w := window(r.Limit); w >= time.Second { // a fraction has no notation
			text = parameter(text, 'w', seconds(w))
		}
	}
	return string(text)
}

// nameOf is the id of the rule and, if it has several limits for this client, a colon
// and the period. What metadata cannot have is escaped as in a URL.
func nameOf(v *engine.Verdict, r *engine.Result) string {
	var room [128]byte
	name := room[:0]
	for _, b := range []byte(r.Rule.Rule.ID) {
		if b <= ' ' || b >= 0x7f || b == '"' || b == '\\' || b == '%' || b == ':' {
			const hex = "0123456789ABCDEF"
			name = append(name, '%', hex[b>>4], hex[b&15])
			continue
		}
		name = append(name, b)
	}
	for i := range v.Results {
		if sibling := &v.Results[i]; sibling != r && sibling.Rule == r.Rule {
			name = appendPeriod(append(name, ':'), r.Limit.Limit().Period)
			break
		}
	}
	return string(name)
}

// appendPeriod appends a period in the largest unit that divides it, as rules write it.
func appendPeriod(dst []byte, d time.Duration) []byte {
	for _, unit := range [...]struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "us"}} {
		if d%unit.length == 0 {
			return append(strconv.AppendInt(dst, int64(d/unit.length), 10), unit.name...)
		}
	}
	return dst // no period is shorter than a microsecond
}

// window is in what time the capacity of a limit comes back: its period, unless it is a
// bucket that is larger or smaller than N.
func window(c *weir.Compiled) time.Duration {
	limit := c.Limit()
	bucket := limit.Algorithm == weir.TokenBucket || limit.Algorithm == weir.LeakyBucket
	if !bucket || limit.Burst == 0 || limit.Burst == limit.N {
		return limit.Period
	}
	high, low := bits.Mul64(uint64(c.Capacity()), uint64(limit.Period.Microseconds()))
	micros, _ := bits.Div64(high, low, uint64(limit.N)) // Compile keeps it below a century
	return time.Duration(micros) * time.Microsecond
}

// maxInteger is the largest one of RFC 9651.
const maxInteger = 999_999_999_999_999

func parameter(dst []byte, name byte, n int64) []byte {
	return strconv.AppendInt(append(dst, ';', name, '='), min(n, maxInteger), 10)
}

// seconds rounds up. What is over already is 0.
func seconds(d time.Duration) int64 {
	return int64((max(d, 0) + time.Second - 1) / time.Second)
}
