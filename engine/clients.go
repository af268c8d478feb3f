package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/rule"
)

// Clients is the directory that an engine asks to whom a client belongs, which tier it has, and what limits of its own.
type Clients struct {
	Directory *rule.Directory // nil for none

	// DenyUnknown denies requests with an API key that is not in the directory, and those that name no
	// client in it. Default false: the rules alone decide.
	DenyUnknown bool

	// Unread says that the clients could not be read yet. The rules alone then decide, and verdicts are Degraded with ErrNoClients,
	// because a client may be blocked or have other limits. With DenyUnknown, requests of clients that are unknown are denied as
	// unavailable, not as unknown. Default false.
	Unread bool

	// TrustRequest lets the user and the tier of the request take precedence over what the directory says, and an attribute with
	// the name of a level over the client of that level. Default false: the request says only what the directory does not.
	TrustRequest bool
}

// InstallClients puts a directory into force for later requests. What requests have used stays with the clients that
// they had then. If a directory is in force, no two checks may share a [rule.Request] at the same time.
func (e *Engine) InstallClients(c Clients) {
	e.installing.Lock()
	defer e.installing.Unlock()
	in := e.installed.Load()
	e.installed.Store(&installed{
		table: in.table, version: in.version, loaded: in.loaded, overrides: in.overrides, replaced: in.replaced, clock: in.clock,
		clients: in.clients.under(c, in.table),
	})
}

// Clients returns the directory in force. The error tells what in it has no effect under the rules in force; to find
// out, the first call looks at all clients.
func (e *Engine) Clients() (Clients, error) {
	c := e.installed.Load().clients
	if c == nil {
		return Clients{}, nil
	}
	return c.Clients, c.idle()
}

// ErrNoClients is Verdict.Degraded of what was decided before the clients could be read; see [Clients].
var ErrNoClients = errors.New("engine: the clients could not be read yet")

var errNoSuchRule = errors.New("there is no such rule; correct the id, or add the rule")

var errNotCounted = errors.New("the rule counts by something else; write the limits to the client that it counts")

// clients are a directory under the rules in force.
type clients struct {
	Clients
	table    *rule.Table
	compiled *compiled
	idle     func() error
}

// compiled are limits as far as they were asked for. Later versions of a directory share them under the same rules.
type compiled struct {
	mu    sync.RWMutex
	own   map[ownLimit]ownLimits
	dated map[datedLimit][]*weir.Compiled
}

// ownLimit is a quota of some clients under a rule.
type ownLimit struct {
	rule  *rule.Entry
	quota *rule.Quota
	level string // of the clients, which have the rest of their limits from there
}

// ownLimits is what a quota makes. It does not fit a rule of which a request costs more.
type ownLimits struct {
	limits []*weir.Compiled
	fit    bool
}

// datedLimit are limits of a rule, by where they stand, for clients whose periods begin elsewhere.
type datedLimit struct {
	limits       **weir.Compiled
	zone, starts string
}

// under returns a directory under rules. It takes over what is compiled.
func (c *clients) under(now Clients, table *rule.Table) *clients {
	if now.Directory == nil {
		return nil
	}
	next := &clients{Clients: now, table: table}
	if c != nil && c.table == table {
		next.compiled = c.compiled
	} else {
		next.compiled = &compiled{own: map[ownLimit]ownLimits{}, dated: map[datedLimit][]*weir.Compiled{}}
	}
	next.idle = sync.OnceValue(next.findIdle)
	return next
}

// findIdle looks at all clients for what has no effect.
func (c *clients) findIdle() error {
	var idle []string
	tried := map[ownLimit]error{}
	for name, all := range c.Directory.Limited() {
		idle = appendIdleLimits(idle, c.table, name, all, tried)
	}
	for _, tier := range slices.Sorted(maps.Keys(c.Directory.Tiers())) {
		idle = appendIdleTier(idle, c.table, tier)
	}
	return idleError(idle)
}

// Idle tells what in an entry of a directory has no effect under the rules in force. The error is an [IdleError].
func (e *Engine) Idle(c *rule.Client) error {
	table := e.installed.Load().table
	idle := appendIdleLimits(nil, table, c.Name, c.Limits, map[ownLimit]error{})
	if c.Tier != "" {
		idle = appendIdleTier(idle, table, c.Tier)
	}
	return idleError(idle)
}

func appendIdleLimits(idle []string, table *rule.Table, name string, all []rule.OwnLimit, tried map[ownLimit]error) []string {
	for i := range all {
		if err := try(table, name, &all[i], tried); err != nil && len(idle) < maxIdle {
			idle = append(idle, fmt.Sprintf("limits of %s for %s: %v", name, document.Quote(all[i].Rule), err))
		}
	}
	return idle
}

func appendIdleTier(idle []string, table *rule.Table, tier string) []string {
	if slices.ContainsFunc(table.Rules(), func(r *rule.Entry) bool { _, has := r.Tiers[tier]; return has }) {
		return idle
	}
	return append(idle, fmt.Sprintf("tier %s: no rule has it; correct the name, or add it to the tiers of a rule", document.Quote(tier)))
}

func idleError(idle []string) error {
	if len(idle) == 0 {
		return nil
	}
	return &IdleError{idle}
}

// try tells why a limit of a client has no effect. It notes those that other clients have, too.
func try(table *rule.Table, name string, l *rule.OwnLimit, tried map[ownLimit]error) error {
	entry := table.Find(l.Rule)
	if entry == nil {
		return errNoSuchRule
	} else if !entry.Counts(name) {
		return errNotCounted
	}
	own := ownLimit{entry, &l.Quota, entry.Level(name)}
	err, known := tried[own]
	if !known {
		_, err = entry.CompileFor(name, l.Quota)
		remember(tried, own, err)
	}
	return err
}

// remember notes something, of which there is not too much.
func remember[K comparable, V any](all map[K]V, key K, value V) {
	if len(all) >= maxShares {
		clear(all)
	}
	all[key] = value
}

// maxIdle bounds what an [IdleError] lists.
const maxIdle = 1000

// IdleError reports what in a directory has no effect under the rules in force: such clients have the limits of the rules.
type IdleError struct{ What []string }

func (e *IdleError) Error() string {
	if more := len(e.What) - 1; more > 0 {
		return fmt.Sprintf("%s; and %d more", e.What[0], more)
	}
	return e.What[0]
}

// resolve finds out whose request it is, and whether that is enough to deny it.
func (in *installed) resolve(req *rule.Request) (blocked, unknown bool) {
	c := in.clients
	if c == nil {
		req.Resolve(nil, false)
		return false, false
	}
	found := req.Resolve(c.Directory, c.TrustRequest)
	return found.Blocked, c.DenyUnknown && !found.Known
}

// limitsOf are what a client has by the directory, if that says something: limits of its own, or those of the rule
// for its tier, with periods that begin as it has them.
func (c *clients) limitsOf(r *rule.Entry, identity, tier string, req *rule.Request) (limits []*weir.Compiled, ok bool) {
	found, ok := c.Directory.Counts(r, identity, req)
	if !ok {
		return nil, false
	}
	if own, has := found.Of(r.ID); has {
		limits, ok = c.ownLimits(ownLimit{r, own, r.Level(identity)}, identity)
	} else {
		ok = false
	}
	if !ok {
		limits = r.Limits(identity, r.TierAt(found, tier))
	}
	if found.Zone != "" || found.Starts != "" {
		limits = c.date(r, limits, found.Zone, found.Starts)
	}
	return limits, true
}

// ownLimits are those of clients, of whom one is given, unless they do not fit the rule.
func (c *clients) ownLimits(own ownLimit, identity string) (limits []*weir.Compiled, fit bool) {
	made := lookUp(&c.compiled.mu, c.compiled.own, own, func() ownLimits {
		limits, err := own.rule.CompileFor(identity, *own.quota)
		return ownLimits{limits, err == nil}
	})
	return made.limits, made.fit
}

// date returns limits with periods that begin elsewhere, as far as they follow the calendar.
func (c *clients) date(r *rule.Entry, limits []*weir.Compiled, zone, starts string) []*weir.Compiled {
	if !slices.ContainsFunc(limits, (*weir.Compiled).FollowsCalendar) {
		return limits
	}
	key := datedLimit{&limits[0], zone, starts}
	return lookUp(&c.compiled.mu, c.compiled.dated, key, func() []*weir.Compiled { return r.Dated(limits, zone, starts) })
}

// lookUp returns what is known, or makes it. Two may make it at once.
func lookUp[K comparable, V any](mu *sync.RWMutex, all map[K]V, key K, make func() V) V {
	mu.RLock()
	value, known := all[key]
	mu.RUnlock()
	if known {
		return value
	}
	value = make()
	mu.Lock()
	defer mu.Unlock()
	remember(all, key, value)
	return value
}
