package rule

import (
	"maps"
	"slices"
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
}

// Table is a compiled set. It is immutable.
type Table struct {
	rules      []*Entry // in the order of the document
	byID       map[string]*Entry
	index      *match.Index[Hit]
	tokens     *match.Index[Hit] // of rules that count tokens, whatever attributes they match; or nil
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
	tiers     map[string]quota
	overrides map[string]quota

	tierPriorities, overridePriorities map[string]Priority // nil if there are none

	denials, penalty *weir.Compiled

	when, estimate, actual Expression // nil if there is none
	failures               atomic.Int64
	failed                 func(*Entry, error)
}

// Hit is a rule whose conditions a request meets, with what [Table.Match] found out about the
// request.
type Hit struct {
	*Entry
	route match.Route
	err   error // a RequestError of the rule's condition
}

// quota is nil where there is no limit.
type quota []*weir.Compiled

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
// uses the room, if there is any.
func (t *Table) CountsTokens(room []Hit, req *Request) *Entry {
	if t.tokens == nil {
		return nil
	}
	var first *Entry
	for _, hit := range t.tokens.Find(room[:0], req.conditions()) {
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
	if len(c.overrides)+len(c.tiers) == 0 {
		return c.quota
	}
	return c.special(identity, tier)
}

// special is Limits for rules with overrides or tiers.
func (c *Entry) special(identity, tier string) []*weir.Compiled {
	if q, found := c.overrides[identity]; found {
		return q
	}
	return c.usual(tier)
}

// ByTier reports whether the limits of a client depend on its tier: the rule has tiers,
// and no override for the client.
func (c *Entry) ByTier(identity string) bool {
	_, override := c.overrides[identity]
	return len(c.tiers) > 0 && !override
}

// LimitsFor returns the same as Limits for an identity in bytes.
func (c *Entry) LimitsFor(identity []byte, tier string) []*weir.Compiled {
	if q, found := c.overrides[string(identity)]; found {
		return q
	}
	return c.usual(tier)
}

// usual is for clients without an override.
func (c *Entry) usual(tier string) quota {
	if q, found := c.tiers[tier]; found {
		return q
	}
	return c.quota
}

// Every returns one limit of each kind that the rule may apply to any client, those of a
// penalty last. To reset
// a client, reset all of them, because its tier may have changed.
func (c *Entry) Every() []*weir.Compiled {
	var all quota
	for _, q := range slices.Concat([]quota{c.quota}, slices.Collect(maps.Values(c.tiers)), slices.Collect(maps.Values(c.overrides))) {
		for _, limit := range q {
			if !all.has(limit.Kind()) {
				all = append(all, limit)
			}
		}
	}
	slices.SortFunc(all, func(a, b *weir.Compiled) int { return int(a.Limit().Period - b.Limit().Period) })
	for _, limit := range []*weir.Compiled{c.denials, c.penalty} {
		if limit != nil {
			all = append(all, limit)
		}
	}
	return all
}
