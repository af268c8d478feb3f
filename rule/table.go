package rule

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/match"
)

// Options configures Compile. The zero value is ready to use.
type Options struct {
	// IPv6Bits is the length of the prefix by which IPv6 clients are distinguished, 1
	// to 128. Default 64, the usual network of one customer.
	IPv6Bits int

	// IgnoreCase makes the paths of rules match regardless of ASCII case, for servers
	// that treat /API as /api. Default false.
	IgnoreCase bool

	// Failed is called when an expression of a rule cannot be evaluated for the first
	// time. It must be fast. Default none. See [Entry.Failures].
	Failed func(rule *Entry, err error)

	// Prices are for rules that count what tokens cost. Default none: such rules deny every request.
	Prices *Prices
}

// Table is a compiled set. It is immutable.
type Table struct {
	rules      []*Entry // in the order of the document
	byID       map[string]*Entry
	index      *match.Index[Hit]
	tokens     *readers // rules that count tokens
	mcp        *readers // rules that count messages of MCP
	exempt     list
	block      list
	headers    map[string]bool // by which rules count
	settles    bool
	concurrent bool // some rule limits how many requests are in flight
	client     clientParts

	units    []string // of its rules, ascending
	weighted bool     // some rule has weights of tokens

	readsBody   bool // some expression reads the body of requests
	conditional bool // some rule has a condition that the index does not know
}

// Entry is a compiled rule of a table.
type Entry struct {
	*Rule

	order int // in the document
	match *match.Rule
	key   []part

	quota     quota
	tiers     map[string]prioritized
	overrides map[string]prioritized
	levels    []level // instead of quota, and of the limits in tiers
	special   bool    // a tier or an override has a priority
	money     string  // the currency whose millionths it counts, or ""

	denials, penalty, fallback *weir.Compiled // nil if there is none

	when, estimate, actual Expression // nil if there is none
	failures               atomic.Int64
	failed                 func(*Entry, error)
	prices                 *Prices // or nil
}

// Precedes reports whether the rule is earlier in the set than another.
func (c *Entry) Precedes(other *Entry) bool { return c.order < other.order }

// Hit is a rule whose conditions a request meets, with what [Table.Match] found out about the
// request.
type Hit struct {
	*Entry
	route match.Route
	err   error // a RequestError of the rule's condition
}

// quota is nil where there is no limit.
type quota []*weir.Compiled

// prioritized is the quota of a tier or an override, and its priority, or 0.
type prioritized struct {
	quota
	priority Priority
}

func (q quota) has(kind uint64) bool {
	return slices.ContainsFunc(q, func(l *weir.Compiled) bool { return l.Kind() == kind })
}

// Rules returns all rules in the order of the document, including those that are off.
func (t *Table) Rules() []*Entry { return t.rules }

// Find returns the rule with an id, including one that is off, or nil.
func (t *Table) Find(id string) *Entry { return t.byID[id] }

// CountsByHeader reports whether a rule counts by this header, even if the rule is off.
// The name is as in http.CanonicalHeaderKey.
func (t *Table) CountsByHeader(name string) bool { return t.headers[name] }

// Match appends every rule whose conditions the request meets, once each, in the order
// of the document. It skips rules that are off. [Hit.Identities] then tells whether a
// rule applies.
//
// Match allocates only to grow hits, unless the client writes its method, host or path
// in an unusual way, or an expression is evaluated.
func (t *Table) Match(hits []Hit, req *Request) []Hit {
	if len(req.Batch) > 0 {
		return t.matchBatch(hits, req)
	}
	before := len(hits)
	hits = t.index.Find(hits, req.conditions())
	if !t.conditional && !req.Unread {
		return hits
	}
	found := hits[:before]
	for _, c := range hits[before:] {
		if req.Unread && c.needsBody() {
			continue
		}
		var applies bool
		if applies, c.err = c.applies(req); applies {
			found = append(found, c)
		}
	}
	return found
}

// CountsTokens returns the first rule that counts the tokens of a request, going by its method,
// host and path, or nil. A rule that can deny the request comes before one that cannot. The attribute
// "model" is known only when the body has been read, so attributes do not matter here. The search
// uses buf, if it has a capacity.
func (t *Table) CountsTokens(buf []Hit, req *Request) *Entry {
	return t.tokens.first(buf, req)
}

// readers are rules that match by what is in the body of requests, whatever attributes they match. Nil is none.
type readers struct{ index *match.Index[Hit] }

// first is the first of the rules that may apply to a request, and the first that can deny it if there is one; or nil.
func (x *readers) first(buf []Hit, req *Request) *Entry {
	if x == nil {
		return nil
	}
	var first *Entry
	for _, hit := range x.index.Find(buf[:0], req.conditions()) {
		if first == nil || hit.Mode.Denies() && !first.Mode.Denies() {
			first = hit.Entry
		}
	}
	return first
}

// Settles reports whether the cost of any rule is known only when there is a response.
func (t *Table) Settles() bool { return t.settles }

// Concurrent reports whether any rule limits how many requests are in flight.
func (t *Table) Concurrent() bool { return t.concurrent }

// conditions is what the conditions of rules are held against.
func (r *Request) conditions() match.Request {
	return match.Request{Method: r.Method, Host: r.Host, Path: r.Path, Attributes: r.Attributes}
}

// Limits returns the limits that apply to a client of the rule, none if it is
// unlimited. The identity is the result of [Entry.Identity].
func (c *Entry) Limits(identity, tier string) []*weir.Compiled {
	if len(c.overrides)+len(c.tiers)+len(c.levels) == 0 {
		return c.quota
	}
	return c.specialLimits(identity, tier)
}

// specialLimits is Limits for rules with overrides, tiers or levels.
func (c *Entry) specialLimits(identity, tier string) []*weir.Compiled {
	if q, found := c.overrides[identity]; found {
		return q.quota
	}
	usual, tiers := c.quota, c.tiers
	if l := c.levelOf(identity); l != nil {
		usual, tiers = l.quota, l.tiers
	}
	if q, found := tiers[tier]; found {
		return q.quota
	}
	return usual
}

// ByTier reports whether the limits of a client depend on its tier: the rule has tiers,
// and no override for the client.
func (c *Entry) ByTier(identity string) bool {
	_, override := c.overrides[identity]
	return len(c.tiers) > 0 && !override
}

// Every returns one limit of each kind that the rule may apply to any client, those of a
// penalty and of a fallback last. To reset
// a client, reset all of them, because its tier may have changed.
func (c *Entry) Every() []*weir.Compiled {
	var all quota
	add := func(q quota) {
		for _, limit := range q {
			if !all.has(limit.Kind()) {
				all = append(all, limit)
			}
		}
	}
	for q := range c.quotas {
		add(q)
	}
	for _, q := range c.overrides {
		add(q.quota)
	}
	slices.SortFunc(all, func(a, b *weir.Compiled) int { return int(a.Limit().Period - b.Limit().Period) })
	for _, limit := range []*weir.Compiled{c.denials, c.penalty, c.fallback} {
		if limit != nil {
			all = append(all, limit)
		}
	}
	return all
}

// quotas yields those of the rule, its levels and its tiers.
func (c *Entry) quotas(yield func(quota) bool) {
	for _, l := range append([]level{{quota: c.quota, tiers: c.tiers}}, c.levels...) {
		if !yield(l.quota) {
			return
		}
		for _, q := range l.tiers {
			if !yield(q.quota) {
				return
			}
		}
	}
}

// list is whom a set exempts or blocks, made ready.
type list struct {
	networks []netip.Prefix // sorted; none within another
	users    map[string]struct{}
	apiKeys  map[string]struct{} // by hash
}

// Exempt reports whether the request is on the exempt list, so that it is neither
// limited nor blocked. If it has several users or API keys, all must be on the list.
func (t *Table) Exempt(req *Request) bool { return t.exempt.contains(req, true) }

// Blocked reports whether the request is on the block list. Check Exempt first. If the
// request has several users or API keys, one on the list is enough.
func (t *Table) Blocked(req *Request) bool { return t.block.contains(req, false) }

// Listed reports whether a client is on the exempt or the block list, as far as its identity tells:
// it is the result of [Entry.Identity]. Limits deny no client that is.
func (t *Table) Listed(identity string) bool {
	return slices.ContainsFunc(splitIdentity(identity), func(piece string) bool { return t.exempt.names(piece) || t.block.names(piece) })
}

// Blocks reports whether a client is on the block list, and not on the exempt list, as far as its
// identity tells; see Listed.
func (t *Table) Blocks(identity string) bool {
	pieces := splitIdentity(identity)
	return slices.ContainsFunc(pieces, t.block.names) && !slices.ContainsFunc(pieces, t.exempt.names)
}

// names reports whether a part of an identity is on the list.
func (l *list) names(piece string) (found bool) {
	kind, value, _ := strings.Cut(piece, ":")
	switch kind {
	case "ip":
		network, err := netip.ParsePrefix(value)
		if ip, bad := netip.ParseAddr(value); bad == nil {
			network, err = netip.PrefixFrom(ip, ip.BitLen()), nil
		}
		if err == nil {
			listed, inside := l.network(network.Addr())
			return inside && listed.Bits() <= network.Bits()
		}
	case "user":
		if value, err := unescapeValue(value); err == nil {
			_, found = l.users[value]
		}
	case "api_key":
		_, found = l.apiKeys[value]
	}
	return found
}

func (l List) isEmpty() bool { return len(l.IPs)+len(l.Users)+len(l.APIKeys) == 0 }

func newList(l List) (list, error) {
	out := list{users: map[string]struct{}{}, apiKeys: map[string]struct{}{}}
	for _, network := range l.IPs {
		if !network.IsValid() {
			return list{}, fmt.Errorf("ip: %v is not a network; write for example 10.0.0.0/8", network)
		}
		out.networks = append(out.networks, canonicalNetwork(network))
	}
	out.networks = outermost(out.networks)
	for _, user := range l.Users {
		out.users[user] = struct{}{}
	}
	for _, key := range l.APIKeys {
		if !isHash(key) {
			key = HashAPIKey(key)
		}
		out.apiKeys[key] = struct{}{}
	}
	return out, nil
}

// contains costs no more for a long list than for a short one, but for the depth
// of a binary search among the networks. Of several users or API keys, all must be on
// the list, or any.
func (l *list) contains(req *Request, all bool) bool {
	if len(l.networks) > 0 && req.IP.IsValid() {
		if _, found := l.network(req.IP); found {
			return true
		}
	}
	return len(l.users) > 0 && l.containsSome(&ownUser, req, all) ||
		len(l.apiKeys) > 0 && l.containsSome(&ownAPIKey, req, all)
}

func (l *list) containsSome(p *part, req *Request, all bool) bool {
	some := false
	for at := 0; ; {
		var value string
		if value, at = p.value(req, at); at == 0 {
			return some
		}
		if some = l.has(p.source.Kind, value); some != all {
			return some
		}
	}
}

func (l *list) has(kind SourceKind, value string) (found bool) {
	if kind == User {
		_, found = l.users[value]
		return found
	}
	var buf [len(marker) + 2*hashBytes]byte
	_, found = l.apiKeys[string(appendHash(buf[:0], hashOf(prefixAPIKey, value)))]
	return found
}

// network finds the one that contains the address. It can only be the last that
// begins at or before it, because none is within another.
func (l *list) network(ip netip.Addr) (netip.Prefix, bool) {
	ip = canonicalIP(ip)
	after := sort.Search(len(l.networks), func(i int) bool { return ip.Less(l.networks[i].Addr()) })
	if after == 0 || !l.networks[after-1].Contains(ip) {
		return netip.Prefix{}, false
	}
	return l.networks[after-1], true
}

// outermost sorts networks and leaves out those within others.
func outermost(networks []netip.Prefix) []netip.Prefix {
	slices.SortFunc(networks, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	kept := networks[:0]
	for _, n := range networks {
		if len(kept) == 0 || !kept[len(kept)-1].Contains(n.Addr()) {
			kept = append(kept, n)
		}
	}
	return kept
}

// canonicalNetwork masks a network, and makes IPv4 of one that is mapped into IPv6.
func canonicalNetwork(n netip.Prefix) netip.Prefix {
	if n.Addr().Is4In6() && n.Bits() >= 96 {
		n = netip.PrefixFrom(n.Addr().Unmap(), n.Bits()-96)
	}
	return n.Masked()
}
