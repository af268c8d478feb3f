package front

import (
	"math/bits"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/notation"
)

// Families of fields; docs/reference/middleware.md says what is in each.
const (
	XRateLimit = 1 << iota
	RateLimit
	RetryAfter
)

// Names are the fields, as a protocol spells them.
type Names struct{ Limit, Remaining, Reset, Degraded, Policy, RateLimit, Warning, RetryAfter string }

var (
	HTTP = Names{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Degraded", "Ratelimit-Policy", "Ratelimit", "Ratelimit-Warning", "Retry-After"}
	GRPC = Names{"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-ratelimit-degraded", "ratelimit-policy", "ratelimit", "ratelimit-warning", "retry-after"}
)

// Write sets the fields that a verdict of some time ago gives rise to, of a request that
// has to wait if it was denied.
//
// All values are parts of one string, and all lists of values parts of one array: two
// allocations, whatever there is to say. That is why it does not use a library for
// structured fields; a test reads them with one.
func Write(h map[string][]string, names *Names, v *engine.Verdict, age, wait time.Duration, families int) {
	var room [512]byte
	var f fields
	text := room[:0]
	speaker := v.Speaker()
	if speaker != nil && !speaker.Asked {
		speaker = nil
	}
	if families&XRateLimit != 0 && speaker != nil {
		text = f.end(names.Limit, strconv.AppendInt(text, speaker.Limit, 10))
		text = f.end(names.Remaining, strconv.AppendInt(text, speaker.Remaining, 10))
		text = f.end(names.Reset, strconv.AppendInt(text, UnixSeconds(speaker.ResetAt), 10))
	}
	if families&XRateLimit != 0 && v.Degraded != nil {
		text = f.end(names.Degraded, append(text, '1'))
	}
	if families&RateLimit != 0 && speaker != nil {
		until := wait
		if until == 0 {
			until = speaker.ResetAfter - age
		}
		text = f.end(names.Policy, AppendPolicies(text, v))
		text = AppendName(text, v, speaker)
		text = AppendParameter(text, 'r', speaker.Remaining)
		text = AppendParameter(text, 't', notation.CeilDuration(until, time.Second))
		if speaker.Reserved > 0 {
			text = strconv.AppendInt(append(text, ";weir-reserved="...), min(speaker.Reserved, maxInteger), 10)
		}
		text = f.end(names.RateLimit, text)
	}
	if families&(XRateLimit|RateLimit) != 0 && Warns(v) {
		text = f.end(names.Warning, AppendWarnings(text, v, age))
	}
	if families&RetryAfter != 0 && wait > 0 {
		text = f.end(names.RetryAfter, strconv.AppendInt(text, notation.CeilDuration(wait, time.Second), 10))
	}
	f.set(h, text)
}

// fields are values that stand in one text, one after the other.
type fields struct {
	names [8]string
	ends  [8]int
	n     int
}

// end says that the text since the last end is the value of a field.
func (f *fields) end(name string, text []byte) []byte {
	f.names[f.n], f.ends[f.n] = name, len(text)
	f.n++
	return text
}

func (f *fields) set(h map[string][]string, text []byte) {
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

// MaxPolicies bounds a header that grows with the rules: proxies refuse a response
// whose headers are longer than a few kilobytes.
const MaxPolicies = 16

// AppendPolicies appends the limits that were asked, as in
//
//	"login:1m";q=5;w=60, "login:1h";q=20;w=3600
//
// in the order of the rules, soft ones last; the one that speaks is always among them. Shadow
// rules are omitted.
func AppendPolicies(dst []byte, v *engine.Verdict) []byte {
	speaker := v.Speaker()
	spoken, n := false, 0
	for i := range v.Results {
		r := &v.Results[i]
		last := n == MaxPolicies-1 && !spoken
		if isHidden(r) || n == MaxPolicies || last && !same(r, speaker) || repeats(v, i, anyResult) {
			continue
		}
		if n > 0 {
			dst = append(dst, ", "...)
		}
		dst = appendPolicy(dst, v, r)
		spoken = spoken || same(r, speaker)
		n++
	}
	return dst
}

// isHidden reports whether a client is not told of a limit.
func isHidden(r *engine.Result) bool { return !r.Asked || r.Shadow && !r.Soft }

// Warns reports whether a client is warned: a limit has reached a threshold, or is soft and was
// exceeded. Who is denied knows anyway.
func Warns(v *engine.Verdict) bool {
	for i := range v.Results {
		if v.Allowed && warns(&v.Results[i]) {
			return true
		}
	}
	return false
}

func warns(r *engine.Result) bool {
	return !isHidden(r) && (r.Warning() > 0 || r.Soft && !r.Allowed)
}

// AppendWarnings appends the limits that warn, with the highest threshold that was reached, what
// remains, and the seconds until the client is fully reset, as in
//
//	"plan";used=80;r=1871;t=431022, "trial";r=0;t=52;soft
//
// in the order of the rules, soft ones last. A soft limit that was exceeded has the flag soft.
func AppendWarnings(dst []byte, v *engine.Verdict, age time.Duration) []byte {
	n := 0
	for i := range v.Results {
		r := &v.Results[i]
		if n == MaxPolicies || !warns(r) || repeats(v, i, warns) {
			continue
		}
		if n > 0 {
			dst = append(dst, ", "...)
		}
		dst = AppendName(dst, v, r)
		if used := r.Warning(); used > 0 {
			dst = strconv.AppendInt(append(dst, ";used="...), int64(used), 10)
		}
		dst = AppendParameter(dst, 'r', r.Remaining)
		dst = AppendParameter(dst, 't', notation.CeilDuration(max(0, r.ResetAfter-age), time.Second))
		if r.Soft && !r.Allowed {
			dst = append(dst, ";soft"...)
		}
		n++
	}
	return dst
}

// appendPolicy appends one limit. Its quota is what can be had at once, which is what
// r is counted in, and its window the time in which that comes back, so that q/w is
// the rate also of a bucket with a burst. Requests in flight have a unit instead.
func appendPolicy(dst []byte, v *engine.Verdict, r *engine.Result) []byte {
	dst = AppendName(dst, v, r)
	dst = AppendParameter(dst, 'q', r.Compiled.Capacity())
	if r.Compiled.Algorithm() == weir.InFlight {
		return append(dst, `;qu="concurrent-requests"`...)
	}
	if w := window(r); w >= time.Second {
		dst = AppendParameter(dst, 'w', notation.CeilDuration(w, time.Second)) // a fraction has no notation
	}
	return dst
}

// window is how long a client who has used everything needs to be fully reset: a period, or
// the present one of the calendar.
func window(r *engine.Result) time.Duration {
	c := r.Compiled
	l := c.Limit()
	if l.Algorithm != weir.TokenBucket && l.Algorithm != weir.LeakyBucket || l.Burst == 0 || l.Burst == l.N {
		return c.Length(r.ResetAt.Add(-r.ResetAfter))
	}
	high, low := bits.Mul64(uint64(c.Capacity()), uint64(l.Period.Microseconds()))
	micros, _ := bits.Div64(high, low, uint64(l.N)) // Compile has seen to it that this is below a century
	return time.Duration(micros) * time.Microsecond
}

// AppendName appends the name of a limit, in quotes.
func AppendName(dst []byte, v *engine.Verdict, r *engine.Result) []byte {
	return append(v.AppendName(append(dst, '"'), r), '"')
}

// same reports whether two results are about one limit, maybe of two clients. Levels can share what is compiled.
func same(a, b *engine.Result) bool {
	return a != nil && b != nil && a.Rule == b.Rule && a.Compiled == b.Compiled && a.Level() == b.Level()
}

// repeats reports whether the limit of a result is that of an earlier one that counts, of
// another client whom the request is at the same time.
func repeats(v *engine.Verdict, i int, counts func(*engine.Result) bool) bool {
	for j := i - 1; j >= 0 && v.Results[j].Rule == v.Results[i].Rule; j-- {
		if same(&v.Results[j], &v.Results[i]) && counts(&v.Results[j]) {
			return true
		}
	}
	return false
}

func anyResult(*engine.Result) bool { return true }

// maxInteger is the largest one of RFC 9651.
const maxInteger = 999_999_999_999_999

// AppendParameter appends a parameter that is a number, as in ";q=5".
func AppendParameter(dst []byte, name byte, n int64) []byte {
	return strconv.AppendInt(append(dst, ';', name, '='), min(n, maxInteger), 10)
}

// UnixSeconds is the first whole second that is not before an instant.
func UnixSeconds(m weir.Micros) int64 {
	return int64((m + 999_999) / 1_000_000)
}
