package grpclimit

import (
	"strconv"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/middleware/field"
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

// fieldsOf are the metadata that a verdict of some time ago gives rise to, of a call
// that has to wait if it was refused. They mean what the headers of HTTP mean.
func fieldsOf(v *engine.Verdict, age, wait time.Duration, families Headers) metadata.MD {
	md := make(metadata.MD)
	speaker := v.Speaker()
	if families&XRateLimit != 0 && speaker != nil {
		md["x-ratelimit-limit"] = []string{strconv.FormatInt(speaker.Decision.Limit, 10)}
		md["x-ratelimit-remaining"] = []string{strconv.FormatInt(speaker.Remaining, 10)}
		md["x-ratelimit-reset"] = []string{strconv.FormatInt(field.UnixSeconds(speaker.ResetAt), 10)}
	}
	if families&XRateLimit != 0 && v.Degraded != nil {
		md["x-ratelimit-degraded"] = []string{"1"}
	}
	if families&RateLimit != 0 && speaker != nil {
		until := wait
		if until == 0 {
			until = speaker.ResetAfter - age
		}
		var room [512]byte
		text := field.AppendName(room[:0], v, speaker)
		text = field.AppendParameter(field.AppendParameter(text, 'r', speaker.Remaining), 't', field.Seconds(until))
		md["ratelimit"] = []string{string(text)}
		md["ratelimit-policy"] = []string{string(field.AppendPolicies(room[:0], v))}
	}
	if families&RetryAfter != 0 && wait > 0 {
		md["retry-after"] = []string{strconv.FormatInt(field.Seconds(wait), 10)}
	}
	return md
}
