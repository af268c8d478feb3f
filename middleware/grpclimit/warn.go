package grpclimit

import (
	"cmp"
	"log/slog"

	"github.com/weirhq/weir/internal/clientip"
)

// mistake is something in the set-up that shows only when calls come.
type mistake int

const (
	proxyNotTrusted mistake = iota
	mountedTwice
	headersDisagree
	noAddress
	notJudged
	codesOfMistakes // how many there are
)

// mistakes say what is wrong, in a sentence, and what to do.
var mistakes = [codesOfMistakes]struct{ code, what, remedy string }{
	proxyNotTrusted: {"G001", "a proxy's metadata were seen, but no proxy is trusted",
		"If a proxy stands in front, put its network into TrustedProxies; without it, all clients behind the proxy are one. If none does, they are forged, and were rightly ignored."},
	mountedTwice: {"G002", "a call came to the limiter a second time",
		"Put the interceptor into the chain once. The call was charged once."},
	headersDisagree: {"G003", "x-forwarded-for and forwarded name different clients",
		"Set ProxyHeader to the one that your proxies write, and let them remove the other. The call counted as the proxy's own."},
	noAddress: {"G004", "a connection has no IP address",
		"Rules by ip do not apply to it. Let the listener's connections have the address of the client."},
	notJudged: {"G005", "a call could not be judged",
		"It was answered InvalidArgument. The error says what is wrong with the rules or the functions in Options."},
}

// tell logs a mistake, the first time.
func (l *Limiter) tell(m mistake, details ...any) {
	if l.told[m].Load() || l.told[m].Swap(true) {
		return
	}
	about := &mistakes[m]
	cmp.Or(l.options.Logger, slog.Default()).Warn("grpclimit: "+about.code+": "+about.what,
		append([]any{"code", about.code, "remedy", about.remedy}, details...)...)
}

// doubt tells what is doubtful about a client's address.
func (l *Limiter) doubt(d clientip.Doubt, remote string) {
	switch d {
	case clientip.Ignored:
		l.tell(proxyNotTrusted, "peer", remote)
	case clientip.Contradiction:
		l.tell(headersDisagree, "peer", remote)
	case clientip.NoAddress:
		l.tell(noAddress, "peer", remote)
	}
}
