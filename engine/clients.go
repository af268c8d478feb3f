package engine

import (
	"errors"
	"fmt"
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
	next := in.under(in.table, in.version, in.overrides)
	next.loaded, next.clients = in.loaded, newClients(c, in.table)
	e.installed.Store(next)
}

// Clients returns the directory in force. The error tells what in it has no effect under the rules in force.
func (e *Engine) Clients() (Clients, error) {
	c := e.installed.Load().clients
	if c == nil {
		return Clients{}, nil
	}
	return c.Clients, c.idle
}

var errNotCounted = errors.New("the rule counts by something else; write the limits to the client that it counts")

// clients are a directory under the rules in force.
type clients struct {
	Clients
	own  map[ownLimit][]*weir.Compiled
	idle error

	mu    sync.RWMutex
	dated map[datedLimit][]*weir.Compiled // as far as they were asked for
}

// ownLimit is a quota of some clients under a rule.
type ownLimit struct {
	rule  *rule.Entry
	quota *rule.Quota
	level string // of the clients, which have the rest of their limits from there
}

// datedLimit are limits of a rule, by where they stand, for clients whose periods begin elsewhere.
type datedLimit struct {
	limits       **weir.Compiled
	zone, starts string
}

// newClients compiles the clients' own limits.
func newClients(c Clients, table *rule.Table) *clients {
	if c.Directory == nil {
		return nil
	}
	out := &clients{Clients: c, own: map[ownLimit][]*weir.Compiled{}, dated: map[datedLimit][]*weir.Compiled{}}
	var idle []string
	for name, all := range c.Directory.Limited() {
		for i := range all {
			l := &all[i]
			entry, err := table.Find(l.Rule), error(nil)
			if entry == nil {
				err = &NoRuleError{ID: l.Rule}
			} else if !entry.Counts(name) {
				err = errNotCounted
			} else {
				err = out.compile(ownLimit{entry, &l.Quota, entry.Level(name)}, name)
			}
			if err != nil && len(idle) < maxIdle {
				idle = append(idle, fmt.Sprintf("limits of %s for %s: %v", name, document.Quote(l.Rule), err))
			}
		}
	}
	for _, tier := range c.Directory.Tiers() {
		if !slices.ContainsFunc(table.Rules(), func(r *rule.Entry) bool { _, has := r.Tiers[tier]; return has }) {
			idle = append(idle, fmt.Sprintf("tier %s: no rule has it", document.Quote(tier)))
		}
	}
	if len(idle) > 0 {
		out.idle = &IdleError{idle}
	}
	return out
}

// compile compiles limits that clients have, of whom one is given.
func (c *clients) compile(own ownLimit, name string) error {
	if _, done := c.own[own]; done {
		return nil
	}
	limits, err := own.rule.CompileFor(name, *own.quota)
	if err == nil {
		c.own[own] = limits
	}
	return err
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
func (c *clients) limitsOf(r *rule.Entry, identity, tier string) (limits []*weir.Compiled, ok bool) {
	found, ok := c.Directory.Counts(r, identity)
	if !ok {
		return nil, false
	}
	if own, has := found.Of(r.ID); has {
		limits, ok = c.own[ownLimit{r, own, r.Level(identity)}]
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

// date returns limits with periods that begin elsewhere, as far as they follow the calendar.
func (c *clients) date(r *rule.Entry, limits []*weir.Compiled, zone, starts string) []*weir.Compiled {
	if !slices.ContainsFunc(limits, (*weir.Compiled).FollowsCalendar) {
		return limits
	}
	key := datedLimit{&limits[0], zone, starts}
	c.mu.RLock()
	dated, known := c.dated[key]
	c.mu.RUnlock()
	if known {
		return dated
	}
	dated = r.Dated(limits, zone, starts)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.dated) >= maxShares {
		clear(c.dated)
	}
	c.dated[key] = dated
	return dated
}
