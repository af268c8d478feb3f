package httplimit

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/rule"
)

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
