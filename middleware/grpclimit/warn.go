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
	notChecked
	notUsed
	codesOfMistakes // how many there are
)

// mistakes say what is wrong, in a sentence, and what to do.
var mistakes = [codesOfMistakes]struct{ code, what, remedy string }{
	proxyNotTrusted: {"G001", "metadata of a proxy received, but no proxy is trusted",
		"If a proxy is in front, add its network to TrustedProxies; otherwise all clients behind the proxy count as one. If there is no proxy, a client forged the metadata, and they were ignored."},
	mountedTwice: {"G002", "call limited twice",
		"Add the interceptor to the chain once. The call was charged once."},
	headersDisagree: {"G003", "x-forwarded-for and forwarded name different clients",
		"Set ProxyHeader to the one that your proxies set, and make them remove the other. The call was counted for the address of the proxy."},
	noAddress: {"G004", "connection without IP address",
		"All such connections are limited as one client, 0.0.0.0. Use a listener whose connections have the address of the client."},
	notChecked: {"G005", "call not checked",
		"The call failed with InvalidArgument. The error has the cause, in the rules or in the functions of Options."},
	notUsed: {"G006", "result of Actual not used",
		"Return units that rules have. The error has the cause. The call was charged as estimated."},
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
