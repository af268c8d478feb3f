// Package field writes what a verdict says into header fields: the names and policies of
// limits, as structured fields of RFC 9651. Every protocol that has headers says the
// same.
package field

import (
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
)

// MaxPolicies bounds a header that grows with the rules: proxies refuse a response
// whose headers are longer than a few kilobytes.
const MaxPolicies = 16

// AppendPolicies appends the limits that were asked, as in
//
//	"login:1m";q=5;w=60, "login:1h";q=20;w=3600
//
// in the order of the rules; the one that speaks is always among them. Shadow rules
// are nobody's business.
func AppendPolicies(dst []byte, v *engine.Verdict) []byte {
	speaker := v.Speaker()
	spoken, n := false, 0
	for i := range v.Results {
		r := &v.Results[i]
		last := n == MaxPolicies-1 && !spoken
		if r.Shadow || !r.Asked || n == MaxPolicies || last && !same(r, speaker) || repeats(v, i) {
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

// appendPolicy appends one limit. Its quota is what can be had at once, which is what
// r is counted in, and its window the time in which that comes back, so that q/w is
// the rate also of a bucket with a burst.
func appendPolicy(dst []byte, v *engine.Verdict, r *engine.Result) []byte {
	dst = AppendName(dst, v, r)
	dst = AppendParameter(dst, 'q', r.Limit.Capacity())
	if w := window(r.Limit); w >= time.Second {
		dst = AppendParameter(dst, 'w', Seconds(w)) // a fraction has no notation
	}
	return dst
}

// window is how long a client who has used everything needs to be as good as new.
func window(c *weir.Compiled) time.Duration {
	l := c.Limit()
	if l.Algorithm != weir.TokenBucket && l.Algorithm != weir.LeakyBucket || l.Burst == 0 || l.Burst == l.N {
		return l.Period
	}
	high, low := bits.Mul64(uint64(c.Capacity()), uint64(l.Period.Microseconds()))
	micros, _ := bits.Div64(high, low, uint64(l.N)) // Compile has seen to it that this is below a century
	return time.Duration(micros) * time.Microsecond
}

// AppendName appends the name of a limit, in quotes: the id of its rule and, if the
// rule has several limits for this client, the period. A colon is not part of an id,
// so no two names are the same.
func AppendName(dst []byte, v *engine.Verdict, r *engine.Result) []byte {
	dst = append(dst, '"')
	dst = appendBareName(dst, v, r)
	return append(dst, '"')
}

func appendBareName(dst []byte, v *engine.Verdict, r *engine.Result) []byte {
	dst = appendID(dst, r.Rule.ID)
	if !alone(v, r) {
		dst = append(dst, ':')
		dst = appendPeriod(dst, r.Limit.Limit().Period)
	}
	return dst
}

// Name is the name of a limit without quotes: as a rule the id as it is.
func Name(v *engine.Verdict, r *engine.Result) string {
	var room [128]byte
	if name := appendBareName(room[:0], v, r); string(name) != r.Rule.ID {
		return string(name)
	}
	return r.Rule.ID
}

// alone reports whether the rule has no other limit in the verdict.
func alone(v *engine.Verdict, r *engine.Result) bool {
	for i := range v.Results {
		if other := &v.Results[i]; other.Rule == r.Rule && other.Limit != r.Limit {
			return false
		}
	}
	return true
}

// same reports whether two results are about one limit, maybe of two clients.
func same(a, b *engine.Result) bool {
	return a != nil && b != nil && a.Rule == b.Rule && a.Limit == b.Limit
}

// repeats reports whether the limit of a result was asked before, for another client
// whom the request is at the same time.
func repeats(v *engine.Verdict, i int) bool {
	for j := i - 1; j >= 0 && v.Results[j].Rule == v.Results[i].Rule; j-- {
		if same(&v.Results[j], &v.Results[i]) {
			return true
		}
	}
	return false
}

// Names are those of some of the limits that were asked, each once. Shadow rules are not
// among them.
func Names(v *engine.Verdict, which func(*engine.Result) bool) []string {
	var names []string
	for i := range v.Results {
		if r := &v.Results[i]; r.Asked && !r.Shadow && which(r) {
			if name := Name(v, r); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// appendID appends the id of a rule. Those that [rule.Parse] accepts stay as they
// are; in others, what a header cannot have is escaped as in a URL.
func appendID(dst []byte, id string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(id) {
		switch b := id[i]; {
		case b <= 0x20, b >= 0x7f, b == '"', b == '\\', b == '%', b == ':':
			dst = append(dst, '%', hex[b>>4], hex[b&15])
		default:
			dst = append(dst, b)
		}
	}
	return dst
}

// units are those of rule files, the largest first.
var units = [...]struct {
	length time.Duration
	name   string
}{
	{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"},
	{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "us"},
}

// appendPeriod appends a period in the largest unit that divides it.
func appendPeriod(dst []byte, d time.Duration) []byte {
	for _, u := range units {
		if d%u.length == 0 {
			return append(strconv.AppendInt(dst, int64(d/u.length), 10), u.name...)
		}
	}
	return dst // no period is shorter than a microsecond
}

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

// Seconds rounds up. What is over already is 0.
func Seconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Second) + 1
}
