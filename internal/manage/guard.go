package manage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/bearer"
	"github.com/weirhq/weir/internal/clock"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// act is the attribute by which the guard's own rules tell what an address has done.
const act = "act"

var (
	anyCall  = map[string]string{act: "call"}
	wrongTry = map[string]string{act: "wrong-token"}
)

// maxGuarded is how many addresses a guard remembers.
const maxGuarded = 1 << 14

// GuardOptions are options of a guard. The zero value is ready to use.
type GuardOptions struct {
	// Calls is how often one address may call. Default 100/1s with a burst of 200.
	Calls weir.Limit

	// Failures is how many wrong tokens one address may try. Default 10/1m, as a
	// sliding_log.
	Failures weir.Limit

	// Clock tells the time. Default the system's.
	Clock func() weir.Micros
}

// Guard says who may manage. It is safe for concurrent use.
//
// It counts by address, in memory, and with weir's own limiter: it has to hold while
// the store is unavailable.
type Guard struct{ limits *engine.Engine }

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
	return &Guard{limits}, nil
}

func guardRule(id, what string, l weir.Limit, message string) rule.Rule {
	return rule.Rule{
		ID: id, Match: rule.Match{Attributes: map[string][]string{act: {what}}}, Key: []rule.Source{{Kind: rule.IP}},
		Algorithm: l.Algorithm, Buckets: l.Buckets, CountDenied: l.CountDenied,
		Quota: rule.Quota{Rates: []rule.Rate{{N: l.N, Period: l.Period}}, Burst: l.Burst},
		Deny:  rule.Deny{Message: message},
	}
}

// Visit is somebody who calls.
type Visit struct {
	Client        netip.Addr   // who calls, as far as it can be believed
	Authorization []string     // what the call says under this name
	Needs         bearer.Scope // what the call does
	Uncounted     bool         // it is no call of the management, and may come as often as it likes
}

// Allow counts a call, and returns the name of who calls: of the holder of its token, or
// "" if the list is nil, so that no token is asked for. The error is a *TooOftenError,
// ErrNoToken, ErrWrongToken, a *ScopeError, with which the name is there all the same, or
// that of the context.
//
// Too many wrong tokens from one address, and no token from there is looked at, lest the
// right one be found by trying; a call without any is no try.
func (g *Guard) Allow(ctx context.Context, tokens *bearer.List, v Visit) (name string, err error) {
	if !v.Uncounted {
		if err := g.within(ctx, g.limits.Check, v.Client, anyCall); err != nil {
			return "", err
		}
	}
	holder, err := Identify(tokens, v.Authorization)
	switch {
	case errors.Is(err, ErrWrongToken):
		if err := g.within(ctx, g.limits.Check, v.Client, wrongTry); err != nil {
			return "", err
		}
		return "", ErrWrongToken
	case err != nil || tokens == nil:
		return "", err
	}
	if err := g.within(ctx, g.limits.Peek, v.Client, wrongTry); err != nil {
		return "", err
	}
	if holder.Scope < v.Needs {
		return holder.Name, &ScopeError{Holder: holder.Name, Has: holder.Scope, Needs: v.Needs}
	}
	return holder.Name, nil
}

// Identify returns who calls, by what the call says under Authorization. If the list is
// nil, that is somebody without a name who may do everything. The error is ErrNoToken or
// ErrWrongToken. It counts nothing, so it is for calls that were allowed already.
func Identify(tokens *bearer.List, authorization []string) (bearer.Holder, error) {
	if tokens == nil {
		return bearer.Holder{Scope: bearer.Admin}, nil
	}
	given, ok := bearerOf(authorization)
	if !ok {
		return bearer.Holder{}, ErrNoToken
	}
	holder, ok := tokens.Find(given)
	if !ok {
		return bearer.Holder{}, ErrWrongToken
	}
	return holder, nil
}

// within is an error if an address has done something too often.
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

// bearerOf is the token of a call, if it has just one.
func bearerOf(all []string) (string, bool) {
	if len(all) != 1 {
		return "", false
	}
	scheme, bearer, _ := strings.Cut(all[0], " ")
	bearer = strings.Trim(bearer, " ")
	return bearer, strings.EqualFold(scheme, "Bearer") && bearer != ""
}
