package gateway

import (
	"net/http"
	"net/textproto"
	"strings"
)

// isHop reports whether a header is between two neighbours only, and not passed on. The name is
// canonical.
func isHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// dropNamed removes the headers that the values of Connection name.
func dropNamed(h http.Header, connection []string) {
	for _, line := range connection {
		for name := range strings.SplitSeq(line, ",") {
			delete(h, textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)))
		}
	}
}

// hasToken reports whether a list of values has a token, in whichever case.
func hasToken(values []string, token string) bool {
	for _, line := range values {
		for part := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(textproto.TrimString(part), token) {
				return true
			}
		}
	}
	return false
}

// aboutLimits are the names that clients look at to learn about limits. An upstream's
// own limits are not what limits them here. Retry-After is not among them.
func aboutLimits(name string) bool {
	return strings.HasPrefix(name, "X-Ratelimit") || strings.HasPrefix(name, "Ratelimit") || strings.HasPrefix(name, "X-Rate-Limit") || strings.HasPrefix(name, "Anthropic-Ratelimit")
}
