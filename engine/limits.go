package engine

import (
	"sync"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// installed are the rules in force, with what was made of them.
type installed struct {
	table     *rule.Table
	version   int64
	loaded    bool                    // by Install
	overrides []Override              // all, whether or not they have an effect
	replaced  map[client]*replacement // by those that have; nil if there are none
	clients   *clients                // nil if there is no directory
	clock     func() weir.Micros
	shares    shares
}

// under returns other rules, with overrides as they are under these rules.
func (in *installed) under(table *rule.Table, version int64, all []Override) *installed {
	next := &installed{table: table, version: version, loaded: true, overrides: all, clients: in.clients, clock: in.clock}
	if in.clients != nil && table != in.table {
		next.clients = in.clients.under(in.clients.Clients, table)
	}
	for i := range all {
		if c, limits, err := all[i].under(table); err == nil {
			if next.replaced == nil {
				next.replaced = make(map[client]*replacement, len(all))
			}
			next.replaced[c] = &replacement{&all[i], limits, weir.MicrosOf(all[i].Ends)}
		}
	}
	return next
}

// client is somebody whom a rule counts.
type client struct {
	rule *rule.Entry
	key  string
}

// Override replaces the limits of one client under one rule until it ends. It takes
// precedence over the rule's own overrides and tiers. The client keeps its usage under
// each limit whose period does not change. An Override does not apply to a [Demand].
type Override struct {
	ID    string
	Rule  string // the id of the rule
	Key   string // the client, as in [Engine.Standing]
	Quota rule.Quota
	Ends  time.Time // by the clock of the engine
}

// InstallOverrides replaces all overrides for later requests. If two are for the same
// client and rule, the last applies. An override that fails [Engine.ValidateOverride]
// has no effect until rules are installed under which it is valid.
func (e *Engine) InstallOverrides(all []Override) {
	e.installing.Lock()
	defer e.installing.Unlock()
	in := e.installed.Load()
	next := in.under(in.table, in.version, all)
	next.loaded = in.loaded
	e.installed.Store(next)
}

// ValidateOverride returns the key of an override in the form of Result.Key. It returns
// an error if the override would have no effect under the rules in force: a
// [NoRuleError], a [KeyError] or a [weir.InvalidError]. It does not check whether the
// override has ended.
func (e *Engine) ValidateOverride(o Override) (key string, err error) {
	table, _ := e.Rules()
	c, _, err := o.under(table)
	return c.key, err
}

// under is whom an override is about under some rules, and the limits that it gives them.
func (o *Override) under(table *rule.Table) (c client, limits []*weir.Compiled, err error) {
	if c.rule = table.Find(o.Rule); c.rule == nil {
		return c, nil, &NoRuleError{ID: o.Rule}
	}
	if c.key, err = c.rule.ParseIdentity(o.Key); err != nil {
		return c, nil, &KeyError{Rule: o.Rule, Err: err}
	}
	limits, err = c.rule.CompileFor(c.key, o.Quota)
	return c, limits, err
}

// replacement is what an override makes of a client's limits.
type replacement struct {
	override *Override
	limits   []*weir.Compiled
	ends     weir.Micros
}

// replacementOf is what applies to a client instead of the rule's limits; nil if nothing does.
// The clock is read only for a client who has an override.
func (in *installed) replacementOf(c client) *replacement {
	if len(in.replaced) == 0 {
		return nil
	}
	r := in.replaced[c]
	if r == nil || in.clock() >= r.ends {
		return nil
	}
	return r
}

// limits are those that apply to a client, and the override that they come from, if they do.
func (in *installed) limits(c *rule.Entry, identity, tier string, req *rule.Request) ([]*weir.Compiled, *Override) {
	if r := in.replacementOf(client{c, identity}); r != nil {
		return r.limits, r.override
	}
	if in.clients != nil {
		if limits, ok := in.clients.limitsOf(c, identity, tier, req); ok {
			return limits, nil
		}
	}
	return c.Limits(identity, tier), nil
}

// Tier is the tier whose limits were used for a client, and where it comes from.
type Tier struct {
	Name string // "" for the limits without a tier
	From TierFrom
}

// TierFrom tells where a tier comes from.
type TierFrom uint8

const (
	NoTier      TierFrom = iota // no limit of the client depends on the tier
	AskedTier                   // the caller named it
	SeenTier                    // the tier of the directory, or else of the client's last request
	UnknownTier                 // the client was not seen recently, and may have another tier
)

func (f TierFrom) String() string {
	return [...]string{"none", "asked", "seen", "unknown"}[f]
}

// rememberTier takes note of the tier of a client's last request, for queries that do not name one.
func (e *Engine) rememberTier(key, tier string) {
	client, name := e.hash(key), e.hash(tier)
	if was, known := e.tiers.get(client); !known || was != name { // mostly it is there
		e.tiers.put(client, name)
	}
}

// lastTier returns the tier of one of several clients, which is one that its rule names, or
// "": so it is, too, if the client came with a tier that none of the rules knows. Clients
// whose key contains their tier do not matter.
func (e *Engine) lastTier(in *installed, clients []client) Tier {
	found := Tier{}
	for _, c := range clients {
		if _, told := c.rule.TierOf(c.key); told || !c.rule.ByTier(c.key) || in.replacementOf(c) != nil {
			continue
		}
		if in.clients != nil {
			switch by, ok := in.clients.Directory.Counts(c.rule, c.key, nil); {
			case ok && by.Tier != "":
				return Tier{by.Tier, SeenTier}
			case ok && c.rule.Level(c.key) != "":
				continue // its requests had the tiers of clients below it
			}
		}
		seen, known := e.tiers.get(e.hash(c.key))
		if found.From = UnknownTier; !known {
			continue
		}
		found.From = SeenTier
		for name := range c.rule.Tiers {
			if e.hash(name) == seen {
				found.Name = name
			}
		}
		return found
	}
	return found
}

// shares are the limits of one instance among several, and others that are made of those of a rule.
type shares struct {
	mu    sync.Mutex
	byAll map[share]*weir.Compiled
}

type share struct {
	limit     *weir.Compiled
	instances int
	counting  bool
}

// of divides a limit, rounded up: an instance with no share at all would deny
// everybody.
func (s *shares) of(limit *weir.Compiled, instances int) *weir.Compiled {
	if instances == 1 {
		return limit
	}
	return s.derive(share{limit, instances, false})
}

// counting returns the limit as one that counts denied requests.
func (s *shares) counting(limit *weir.Compiled) *weir.Compiled {
	return s.derive(share{limit, 1, true})
}

func (s *shares) derive(key share) *weir.Compiled {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.byAll[key]; c != nil {
		return c
	}
	l, n := key.limit.Limit(), int64(key.instances)
	l.N = (l.N + n - 1) / n
	l.Burst = (l.Burst + n - 1) / n
	l.CountDenied = l.CountDenied || key.counting
	c, err := l.Compile()
	if err != nil {
		c = key.limit // too small to divide: rather allow too much than nothing
	}
	if s.byAll == nil || len(s.byAll) > maxShares {
		s.byAll = make(map[share]*weir.Compiled)
	}
	s.byAll[key] = c
	return c
}

// maxShares bounds what is kept while the number of instances keeps changing.
const maxShares = 100_000
