package httplimit

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/internal/front"
	"github.com/weirhq/weir/rule"
)

// Mistakes of this middleware only; the others are those of front.
const (
	sameForEveryone = front.Own + iota
	notSettled
	notReleased
)

// mistakes say what is wrong, in a sentence, and what to do.
var mistakes = [...]front.Mistake{
	front.ProxyNotTrusted: {"M001", "header of a proxy received, but no proxy is trusted",
		"If a proxy is in front, add its network to TrustedProxies; otherwise all clients behind the proxy count as one. If there is no proxy, a client forged the header, and it was ignored."},
	front.MountedTwice: {"M002", "request limited twice",
		"Wrap a handler or its router, not both. The request was charged once."},
	sameForEveryone: {"M003", "key function returns the same key for all clients",
		"Return what identifies a client, or \"\" for an unknown client. Now all clients share one limit."},
	front.HeadersDisagree: {"M004", "X-Forwarded-For and Forwarded name different clients",
		"Set ProxyHeader to the one that your proxies set, and make them remove the other. The request was counted for the address of the proxy."},
	front.NoAddress: {"M005", "connection without IP address",
		"All such connections are limited as one client, 0.0.0.0. Use a listener whose connections have the address of the client."},
	front.NotChecked: {"M006", "request not checked",
		"The response was 400. The error has the cause, in the rules or in the functions of Options."},
	notSettled: {"M007", "cost not settled, because Allow and /v1/authz do not see the response",
		"Use Wrap or the gateway, or write rules without count, tokens and actual cost, and omit Actual. The request was charged as estimated."},
	notReleased: {"M008", "place not given back, because Allow and /v1/authz do not see the end of the request",
		"Use Wrap or the gateway, or write rules without concurrency. The place is free again after hold_ttl."},
	front.NotUsed: {"M009", "result of Actual not used",
		"Return units that rules have. The error has the cause. The request was charged as estimated."},
}

// When a key function is called the same for everyone, and when that is not looked
// for any longer.
const (
	sameRequests  = 1000
	sameAddresses = 50
	sameGivenUp   = 100_000
)

// sameness watches a key function until a second answer shows that it tells clients
// apart, which is as a rule the second request. "" is no answer.
type sameness struct {
	settled atomic.Bool

	mu        sync.Mutex
	answer    uint64 // its hash: answers may be secret
	requests  int
	addresses map[netip.Addr]struct{} // sameAddresses at most
}

var samenessSeed = maphash.MakeSeed()

// everyone takes note of an answer, and reports, once, that it is everybody's.
func (s *sameness) everyone(answer string, from netip.Addr) bool {
	if answer == "" || s.settled.Load() {
		return false
	}
	h := maphash.String(samenessSeed, answer)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled.Load() {
		return false
	}
	if s.requests == 0 {
		s.answer, s.addresses = h, make(map[netip.Addr]struct{})
	}
	s.requests++
	if len(s.addresses) < sameAddresses && from.IsValid() {
		s.addresses[from] = struct{}{}
	}
	same := h == s.answer
	many := s.requests >= sameRequests && len(s.addresses) >= sameAddresses
	if !same || many || s.requests >= sameGivenUp {
		s.settled.Store(true)
		s.addresses = nil
	}
	return same && many
}

// watch looks at the answers of the key functions.
func (m *Middleware) watch(q *rule.Request) {
	if m.users.everyone(q.User, q.IP) {
		m.front.Tell(sameForEveryone, "function", "User")
	}
	if m.keys.everyone(q.APIKey, q.IP) {
		m.front.Tell(sameForEveryone, "function", "APIKey")
	}
}
