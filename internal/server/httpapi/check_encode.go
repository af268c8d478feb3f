package httpapi

import (
	"strconv"
	"time"

	"github.com/weirhq/weir/internal/jsontext"
)

// appendCheckAnswer appends the answer as json.Marshal would write it, in a fraction
// of the time. A test compares the two.
func appendCheckAnswer(dst []byte, a *CheckAnswer) []byte {
	dst = strconv.AppendBool(append(dst, `{"allowed":`...), a.Allowed)
	dst = jsontext.AppendString(append(dst, `,"reason":`...), a.Reason)
	if a.Status != 0 {
		dst = strconv.AppendInt(append(dst, `,"status":`...), int64(a.Status), 10)
	}
	if a.Rule != "" {
		dst = jsontext.AppendString(append(dst, `,"rule":`...), a.Rule)
	}
	if a.Code != 0 {
		dst = strconv.AppendInt(append(dst, `,"code":`...), int64(a.Code), 10)
	}
	if a.Message != "" {
		dst = jsontext.AppendString(append(dst, `,"message":`...), a.Message)
	}
	dst = appendNumbers(dst, a.Limit, a.Remaining, a.ResetAt, a.ResetAfterMS, a.RetryAfterMS, a.DelayMS)
	if a.Hold != "" {
		dst = jsontext.AppendString(append(dst, `,"hold":`...), a.Hold)
	}
	if !a.HoldExpiresAt.IsZero() {
		dst = append(a.HoldExpiresAt.AppendFormat(append(dst, `,"hold_expires_at":"`...), time.RFC3339Nano), '"')
	}
	if a.Unheld {
		dst = append(dst, `,"unheld":true`...)
	}
	if a.Priority != "" {
		dst = jsontext.AppendString(append(dst, `,"priority":`...), a.Priority)
	}
	dst = strconv.AppendBool(append(dst, `,"degraded":`...), a.Degraded)
	dst = strconv.AppendInt(append(dst, `,"version":`...), a.Version, 10)
	if a.Results == nil {
		return append(dst, `,"results":null}`...)
	}
	dst = append(dst, `,"results":[`...)
	for i := range a.Results {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendLimitAnswer(dst, &a.Results[i])
	}
	return append(dst, `]}`...)
}

func appendLimitAnswer(dst []byte, a *LimitAnswer) []byte {
	dst = jsontext.AppendString(append(dst, `{"rule":`...), a.Rule)
	dst = jsontext.AppendString(append(dst, `,"key":`...), a.Key)
	dst = jsontext.AppendString(append(dst, `,"algorithm":`...), a.Algorithm)
	dst = jsontext.AppendString(append(dst, `,"policy":`...), a.Policy)
	dst = strconv.AppendBool(append(dst, `,"allowed":`...), a.Allowed)
	if a.Shadow {
		dst = append(dst, `,"shadow":true`...)
	}
	if a.Soft {
		dst = append(dst, `,"soft":true`...)
	}
	dst = strconv.AppendBool(append(dst, `,"asked":`...), a.Asked)
	if a.Local {
		dst = append(dst, `,"local":true`...)
	}
	dst = strconv.AppendInt(append(dst, `,"cost":`...), a.Cost, 10)
	if a.Excess != 0 {
		dst = strconv.AppendInt(append(dst, `,"excess":`...), a.Excess, 10)
	}
	if a.Leave != 0 {
		dst = strconv.AppendInt(append(dst, `,"leave":`...), a.Leave, 10)
	}
	dst = appendNumbers(dst, a.Limit, a.Remaining, a.ResetAt, a.ResetAfterMS, a.RetryAfterMS, a.DelayMS)
	if a.Penalty {
		dst = append(dst, `,"penalty":true`...)
	}
	if a.Warning != 0 {
		dst = strconv.AppendInt(append(dst, `,"warning":`...), int64(a.Warning), 10)
	}
	if a.Override != nil {
		dst = jsontext.AppendString(append(dst, `,"override":{"id":`...), a.Override.ID)
		dst = a.Override.EndsAt.AppendFormat(append(dst, `,"ends_at":"`...), time.RFC3339Nano)
		dst = append(dst, `"}`...)
	}
	return append(dst, '}')
}

// appendNumbers appends what an answer and each of its results have in common.
func appendNumbers(dst []byte, limit, remaining, resetAt, resetAfter int64, retryAfter *int64, delay int64) []byte {
	dst = strconv.AppendInt(append(dst, `,"limit":`...), limit, 10)
	dst = strconv.AppendInt(append(dst, `,"remaining":`...), remaining, 10)
	dst = strconv.AppendInt(append(dst, `,"reset_at":`...), resetAt, 10)
	dst = strconv.AppendInt(append(dst, `,"reset_after_ms":`...), resetAfter, 10)
	dst = append(dst, `,"retry_after_ms":`...)
	if retryAfter == nil {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, *retryAfter, 10)
	}
	return strconv.AppendInt(append(dst, `,"delay_ms":`...), delay, 10)
}
