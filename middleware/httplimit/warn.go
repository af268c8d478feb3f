package httplimit

import (
	"cmp"
	"log/slog"
	"net/http"

	"github.com/weirhq/weir/internal/clientip"
)

// code is a mistake in the set-up that shows only when requests come.
type code int

const (
	proxyNotTrusted code = iota
	mountedTwice
	sameForEveryone
	headersDisagree
	noAddress
	notJudged
	codes // how many there are
)

// mistakes say what is wrong, in a sentence, and what to do.
var mistakes = [codes]struct{ code, what, remedy string }{
	proxyNotTrusted: {"M001", "a proxy's header was seen, but no proxy is trusted",
		"If a proxy stands in front, put its network into TrustedProxies; without it, all clients behind the proxy are one. If none does, the header is forged, and was rightly ignored."},
	mountedTwice: {"M002", "a request came to the middleware a second time",
		"Wrap a handler or its router, not both. The request was charged once."},
	sameForEveryone: {"M003", "a key function gives the same answer for everyone",
		"Let it return what tells clients apart, or \"\" for a client whom it does not know; as it is, all of them share one limit."},
	headersDisagree: {"M004", "X-Forwarded-For and Forwarded name different clients",
		"Set ProxyHeader to the one that your proxies write, and let them remove the other. The request counted as the proxy's own."},
	noAddress: {"M005", "a connection has no IP address",
		"Rules by ip do not apply to it. Let the listener's connections have the address of the client."},
	notJudged: {"M006", "a request could not be judged",
		"It was answered 400. The error says what is wrong with the rules or the functions in Options."},
}

// tell logs a mistake, the first time.
func (m *Middleware) tell(c code, details ...any) {
	if m.told[c].Load() || m.told[c].Swap(true) {
		return
	}
	mistake := &mistakes[c]
	cmp.Or(m.options.Logger, slog.Default()).Warn("httplimit: "+mistake.code+": "+mistake.what,
		append([]any{"code", mistake.code, "remedy", mistake.remedy}, details...)...)
}

// doubt tells what is doubtful about a client's address.
func (m *Middleware) doubt(d clientip.Doubt, r *http.Request) {
	switch d {
	case clientip.Ignored:
		m.tell(proxyNotTrusted, "peer", r.RemoteAddr)
	case clientip.Contradiction:
		m.tell(headersDisagree, "peer", r.RemoteAddr)
	case clientip.NoAddress:
		m.tell(noAddress, "peer", r.RemoteAddr)
	}
}
