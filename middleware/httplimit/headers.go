package httplimit

import (
	"net/http"
	"strconv"
	"time"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/middleware/field"
)

// Headers are families of response headers.
type Headers uint8

const (
	// XRateLimit is X-RateLimit-Limit, -Remaining and -Reset, in units and Unix
	// seconds, and X-RateLimit-Degraded: 1 when the store could not be asked.
	XRateLimit Headers = 1 << iota

	// RateLimit is RateLimit-Policy and RateLimit, the structured fields of
	// draft-ietf-httpapi-ratelimit-headers.
	RateLimit

	// RetryAfter is Retry-After, in seconds, of a request that was refused.
	RetryAfter

	// NoHeaders switches all of them off.
	NoHeaders

	AllHeaders = XRateLimit | RateLimit | RetryAfter
)

// WriteHeaders sets the headers that a verdict of this moment gives rise to. They are
// about the limit that speaks for it: the tightest one of an allowed request, the first
// one that denies of a denied request.
//
// X-RateLimit-Reset is when the client is as good as new, by the store's clock, rounded
// up to a second. The t of RateLimit is the same as seconds from now; of a denied
// request it is the wait, like Retry-After: the longest of all limits that deny. That is
// never 0, and missing if waiting does not help.
func WriteHeaders(h http.Header, v *engine.Verdict, families Headers) {
	var wait time.Duration
	if !v.Allowed {
		wait = Describe(v).RetryAfter
	}
	writeHeaders(h, v, 0, wait, families)
}

// writeHeaders is WriteHeaders for a verdict of some time ago, of a request that has
// to wait if it was refused.
//
// All values are parts of one string, and all lists of values parts of one array: two
// allocations, whatever there is to say. That is why it does not use a library for
// structured fields; a test reads them with one.
func writeHeaders(h http.Header, v *engine.Verdict, age, wait time.Duration, families Headers) {
	if families == AllHeaders && v.Degraded == nil && len(v.Results) == 1 && v.Speaker() != nil {
		writeFew(h, v, age, wait)
		return
	}
	writeAny(h, v, age, wait, families)
}

// writeAny is writeHeaders for whatever there is to say.
func writeAny(h http.Header, v *engine.Verdict, age, wait time.Duration, families Headers) {
	var room [512]byte
	var f fields
	text := room[:0]
	speaker := v.Speaker()
	if families&XRateLimit != 0 && speaker != nil {
		text = f.end("X-Ratelimit-Limit", strconv.AppendInt(text, speaker.Decision.Limit, 10))
		text = f.end("X-Ratelimit-Remaining", strconv.AppendInt(text, speaker.Remaining, 10))
		text = f.end("X-Ratelimit-Reset", strconv.AppendInt(text, field.UnixSeconds(speaker.ResetAt), 10))
	}
	if families&XRateLimit != 0 && v.Degraded != nil {
		text = f.end("X-Ratelimit-Degraded", append(text, '1'))
	}
	if families&RateLimit != 0 && speaker != nil {
		until := wait
		if until == 0 {
			until = speaker.ResetAfter - age
		}
		text = f.end("Ratelimit-Policy", field.AppendPolicies(text, v))
		text = field.AppendName(text, v, speaker)
		text = field.AppendParameter(text, 'r', speaker.Remaining)
		text = f.end("Ratelimit", field.AppendParameter(text, 't', field.Seconds(until)))
	}
	if families&RetryAfter != 0 && wait > 0 {
		text = f.end("Retry-After", strconv.AppendInt(text, field.Seconds(wait), 10))
	}
	f.set(h, text)
}

// fields are headers whose values stand in one text, one after the other.
type fields struct {
	names [7]string // canonical
	ends  [7]int
	n     int
}

// end says that the text since the last end is the value of a header.
func (f *fields) end(name string, text []byte) []byte {
	f.names[f.n], f.ends[f.n] = name, len(text)
	f.n++
	return text
}

func (f *fields) set(h http.Header, text []byte) {
	if f.n == 0 {
		return
	}
	all, values, begin := string(text), make([]string, f.n), 0
	for i := range values {
		values[i] = all[begin:f.ends[i]]
		h[f.names[i]] = values[i : i+1 : i+1]
		begin = f.ends[i]
	}
}
