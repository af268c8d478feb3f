package manage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// act is the attribute that the guard's own rules match: what an address has done.
const act = "act"

var (
	anyCall      = map[string]string{act: "call"}
	wrongTry     = map[string]string{act: "wrong-token"}
	wrongSession = map[string]string{act: "wrong-session"}
)

// maxGuarded is how many addresses a guard remembers.
const maxGuarded = 1 << 14

// GuardOptions are options of a guard. The zero value is ready to use.
type GuardOptions struct {
	// Calls is how often one address may call. Default 100/1s with a burst of 200.
	Calls weir.Limit

	// Failures is how many wrong tokens one address may try, and how many wrong sessions.
	// Default 10/1m, as a sliding_log.
	Failures weir.Limit

	// Clock tells the time. Default the system's.
	Clock func() weir.Micros
}

// Guard decides who may make management calls. It is safe for concurrent use.
//
// It counts by address, with weir's own limiter. It counts in memory, so that it also works
// while the store is unavailable.
type Guard struct {
	limits *engine.Engine
	clock  func() weir.Micros
}

// NewGuard returns a new guard.
func NewGuard(o GuardOptions) (*Guard, error) {
	o.Calls = cmp.Or(o.Calls, weir.Limit{N: 100, Burst: 200, Period: time.Second})
	o.Failures = cmp.Or(o.Failures, weir.Limit{Algorithm: weir.SlidingLog, N: 10, Period: time.Minute})
	if o.Clock == nil {
		c := clock.New()
		o.Clock = func() weir.Micros { return weir.Micros(c.Now()) }
	}
	set := &rule.Set{Rules: []rule.Rule{
		guardRule("management", anyCall[act], o.Calls, "too many calls to the management API from this address"),
		guardRule("wrong-tokens", wrongTry[act], o.Failures, "too many calls with invalid tokens from this address; wait, then send a valid token"),
		guardRule("wrong-sessions", wrongSession[act], o.Failures, "too many calls with invalid sessions from this address; wait, then sign in again"),
	}}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		return nil, fmt.Errorf("manage: limits of the guard: %w", err)
	}
	limits, err := engine.New(engine.Options{
		Store: memory.New(memory.Options{MaxKeys: maxGuarded, Clock: o.Clock}), Clock: o.Clock,
	})
	if err != nil {
		return nil, err
	}
	limits.Install(table, 1)
	return &Guard{limits, o.Clock}, nil
}

func guardRule(id, what string, l weir.Limit, message string) rule.Rule {
	return rule.Rule{
		ID: id, Match: rule.Match{Attributes: map[string][]string{act: {what}}}, Key: []rule.Source{{Kind: rule.IP}},
		Algorithm: l.Algorithm, Buckets: l.Buckets, CountDenied: l.CountDenied,
		Quota: rule.Quota{Rates: []rule.Rate{{N: l.N, Period: l.Period}}, Burst: l.Burst},
		Deny:  rule.Deny{Message: message},
	}
}

// Visit describes a call and its caller.
type Visit struct {
	Client      netip.Addr // the address of the caller, from trusted sources only
	Credentials            // of the caller
	Needs       trust.Rights
	Uncounted   bool // not a management call, so GuardOptions.Calls does not apply
}

// Allow counts a call and returns the caller; see [Identify]. The error is a *TooOftenError,
// an error of Identify, a *RightError, or the error of the context. With a *RightError, the
// caller is also returned.
//
// After too many wrong tokens from an address, Allow accepts no token from it, so that
// nobody can find a token by trying. A call without a token does not count as a try. The
// same applies to sessions, because a session could be made from a guessed token. Sessions
// are counted separately, so that a page with an old session does not keep its user from
// signing in.
func (g *Guard) Allow(ctx context.Context, tokens *trust.List, v Visit) (Caller, error) {
	if !v.Uncounted {
		if err := g.Count(ctx, v.Client); err != nil {
			return Caller{}, err
		}
	}
	caller, err := Identify(tokens, v.Credentials, g.clock().Time())
	wrong := map[Via]map[string]string{ByToken: wrongTry, BySession: wrongSession}[caller.Via]
	switch {
	case errors.Is(err, ErrWrongToken), errors.Is(err, ErrWrongSession):
		if err := g.within(ctx, g.limits.Check, v.Client, wrong); err != nil {
			return Caller{}, err
		}
		return Caller{}, err
	case err != nil:
		return Caller{}, err
	case wrong != nil:
		if err := g.within(ctx, g.limits.Peek, v.Client, wrong); err != nil {
			return Caller{}, err
		}
	}
	return caller, caller.need(v.Needs)
}

// Count counts a call that is answered without Allow. The error is a *TooOftenError, or the
// error of the context.
func (g *Guard) Count(ctx context.Context, client netip.Addr) error {
	return g.within(ctx, g.limits.Check, client, anyCall)
}

// within returns an error if an address has done something too often.
func (g *Guard) within(ctx context.Context, ask func(context.Context, *rule.Request, *engine.Verdict) error, client netip.Addr, what map[string]string) error {
	var v engine.Verdict
	if err := ask(ctx, &rule.Request{IP: client, Attributes: what}, &v); err != nil {
		return err
	}
	if !v.Allowed {
		return &TooOftenError{&v}
	}
	return nil
}

// TokenHeader is a header with a token. It goes before Authorization, which may be that of a
// request that a proxy asks about. Metadata has it in lower case.
const TokenHeader = "Weir-Token"

// Credentials are the credentials of a call. They include a cookie only if the server's
// own page made the call.
type Credentials struct {
	Token         []string // the header Weir-Token, for which see [TokenHeader]
	Authorization []string // the header of this name
	Session       string   // see trust.List.Session; "" if there is none

	// Proxy is the user whom a trusted proxy has authenticated; nil if there is none.
	Proxy *trust.Holder
}

// Via tells how the caller was identified.
type Via uint8

const (
	ByNothing Via = iota // no token is required
	ByToken
	BySession
	ByProxy
)

func (v Via) String() string { return [...]string{"none", "token", "session", "proxy"}[v] }

// Caller is the holder of the credentials of a call.
type Caller struct {
	trust.Holder
	Via Via
}

// anybody is the caller where no token is required.
var anybody = Caller{Holder: trust.Holder{Rights: trust.Admin}}

// need is a *RightError unless the caller has a right.
func (c *Caller) need(right trust.Rights) error {
	if c.Rights.Has(right) {
		return nil
	}
	return &RightError{Holder: c.Name, Has: c.Rights, Needs: right}
}

// Identify returns the caller. If the list is nil, the caller has no name and may do
// everything. Precedence: token, session, proxy. The error is ErrNoToken, ErrWrongToken,
// ErrWrongSession or ErrSessionOver; Via then tells what was tried. Identify does not
// count attempts, so use it for calls that were already allowed.
func Identify(tokens *trust.List, c Credentials, now time.Time) (Caller, error) {
	if tokens == nil {
		return anybody, nil
	}
	if given, ok := c.token(); ok {
		holder, known := tokens.Find(given)
		if !known {
			return Caller{Via: ByToken}, ErrWrongToken
		}
		return Caller{holder, ByToken}, nil
	}
	switch {
	case c.HasToken():
		return Caller{}, ErrNoToken
	case c.Session == "" && c.Proxy != nil:
		return Caller{*c.Proxy, ByProxy}, nil
	case c.Session == "":
		return Caller{}, ErrNoToken
	}
	holder, err := tokens.FindSession(c.Session, now)
	switch {
	case errors.Is(err, trust.ErrSessionOver):
		return Caller{Via: BySession}, ErrSessionOver
	case err != nil:
		return Caller{Via: BySession}, ErrWrongSession
	}
	return Caller{holder, BySession}, nil
}

// token returns the token of a call, if it has exactly one.
func (c *Credentials) token() (string, bool) {
	if len(c.Token) > 0 {
		return c.Token[0], len(c.Token) == 1 && c.Token[0] != ""
	}
	if len(c.Authorization) != 1 || !isBearer(c.Authorization[0]) {
		return "", false
	}
	_, bearer, _ := strings.Cut(c.Authorization[0], " ")
	bearer = strings.Trim(bearer, " ")
	return bearer, bearer != ""
}

// HasToken reports whether a call has a token, or several. Other Authorization headers may be
// for a proxy in front.
func (c *Credentials) HasToken() bool {
	return len(c.Token) > 0 || slices.ContainsFunc(c.Authorization, isBearer)
}

func isBearer(authorization string) bool {
	scheme, _, _ := strings.Cut(authorization, " ")
	return strings.EqualFold(scheme, "Bearer")
}
