package httplimit

import (
	"encoding/json"
	"strconv"

	"github.com/weirhq/weir/middleware/field"
)

// append appends the denial as JSON. It is written by hand because it is written most
// when there is least time for it.
func (d *Denial) append(dst []byte) []byte {
	if d.Type == quotaExceeded && d.Title == quotaTitle { // as nearly always
		dst = append(dst, `{"type":"`+quotaExceeded+`","title":"`+quotaTitle+`"`...)
	} else {
		dst = appendJSON(append(dst, `{"type":`...), d.Type)
		dst = appendJSON(append(dst, `,"title":`...), d.Title)
	}
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(d.Status), 10)
	if d.Detail != "" {
		dst = appendJSON(append(dst, `,"detail":`...), d.Detail)
	}
	if d.Rule != "" {
		dst = appendJSON(append(dst, `,"rule":`...), d.Rule)
	}
	if d.Code != 0 {
		dst = strconv.AppendInt(append(dst, `,"code":`...), int64(d.Code), 10)
	}
	for i, name := range d.Policies {
		if i == 0 {
			dst = append(dst, `,"violated-policies":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendJSON(dst, name)
		if i == len(d.Policies)-1 {
			dst = append(dst, ']')
		}
	}
	if d.RetryAfter > 0 {
		dst = strconv.AppendInt(append(dst, `,"retry_after":`...), field.Seconds(d.RetryAfter), 10)
	}
	return append(dst, "}\n"...)
}

// special are bytes that JSON, or a page that has it inside, does not take as they are.
var special = func() (is [256]bool) {
	for b := range is {
		is[b] = b < 0x20 || b >= 0x7f || b == '"' || b == '\\' || b == '<' || b == '>' || b == '&'
	}
	return is
}()

// appendJSON appends a string in quotes.
func appendJSON(dst []byte, s string) []byte {
	for i := range len(s) {
		if special[s[i]] {
			quoted, err := json.Marshal(s)
			if err != nil {
				return append(dst, `""`...) // every string has a notation
			}
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
