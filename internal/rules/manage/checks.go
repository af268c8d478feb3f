package manage

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/internal/trust"
	"github.com/weirhq/weir/rule"
)

// Checks decides for every protocol who may check and charge, and logs who charges what does
// not fit. It is safe for concurrent use.
type Checks struct {
	tokens func() *trust.List
	guard  *Guard
	logger *slog.Logger

	rejected, charged, exceeded, settled Sparse
}

// perMinute lets 10 lines a minute into the log.
func perMinute() Sparse { return Sparse{Lines: 10, Every: time.Minute} }

// NewChecks returns what decides by a list of tokens. If tokens is nil or returns nil,
// everybody may check.
func NewChecks(tokens func() *trust.List, guard *Guard, logger *slog.Logger) *Checks {
	if tokens == nil {
		tokens = func() *trust.List { return nil }
	}
	return &Checks{tokens: tokens, guard: guard, logger: logger, rejected: perMinute(), charged: perMinute(), exceeded: perMinute(), settled: perMinute()}
}

// Tokens returns the list of those who may check; nil if everybody may.
func (c *Checks) Tokens() *trust.List { return c.tokens() }

// Open reports whether everybody may check.
func (c *Checks) Open() bool { return c.tokens() == nil }

// Knows reports whether somebody has a token, if one is required. It counts nothing.
func (c *Checks) Knows(own Credentials) bool {
	_, err := Identify(c.tokens(), own, time.Time{})
	return err == nil
}

// Checker is who checks.
type Checker struct {
	Caller
	Client netip.Addr
	checks *Checks
}

// Anybody is who checks where everybody may. Its Client is not known.
func (c *Checks) Anybody() Checker { return Checker{Caller: anybody, checks: c} }

// Identify returns who checks. The error is one of [Identify].
//
// Wrong tokens count as those of the management do. But they do not keep others at the same
// address from checking: all but the tokens of an admin are accepted all the same. The error
// for too many is that of a wrong one, so that no client takes it for a denial.
func (c *Checks) Identify(ctx context.Context, client netip.Addr, own Credentials) (Checker, error) {
	tokens := c.tokens()
	if tokens == nil {
		return c.Anybody(), nil
	}
	caller, err := Identify(tokens, own, c.guard.clock().Time())
	if err != nil || caller.Rights.Has(trust.Admin) {
		caller, err = c.guard.Allow(ctx, tokens, Visit{Client: client, Credentials: own, Uncounted: true})
		if _, often := errors.AsType[*TooOftenError](err); often {
			err = ErrWrongToken
		}
	}
	k := Checker{Caller: caller, Client: client, checks: c}
	if err != nil {
		k.reject(err)
	}
	return k, err
}

// Need is a *RightError unless the caller has a right, with or without patterns. It is for
// calls about a hold: who knows its id may have made it.
func (k *Checker) Need(right trust.Rights) error {
	err := k.need(right)
	if err != nil {
		k.reject(err)
	}
	return err
}

// Asking is a method of an engine that decides a request.
type Asking func(context.Context, *rule.Request, *engine.Verdict) error

// Ask lets an engine decide a request, which may be charged under what the patterns of a right
// match. The error is a *RightError, or that of the engine.
func (k *Checker) Ask(ctx context.Context, right trust.Rights, req *rule.Request, v *engine.Verdict, ask Asking) error {
	req.Permit = k.Holder.Permit(right)
	if err := k.Need(right); err != nil {
		return err
	}
	if err := ask(ctx, req, v); err != nil {
		return k.Judged(right, err)
	}
	return nil
}

// PermitDemands is a *RightError unless limits that are not in the rules may be charged.
func (k *Checker) PermitDemands(right trust.Rights, demands []engine.Demand) error {
	permit := k.Holder.Permit(right)
	for i := range demands {
		if d := &demands[i]; permit != nil && !permit(d.Rule.ID, d.Key) {
			return k.Judged(right, &engine.PermitError{Rule: d.Rule.ID, Key: strings.Clone(d.Key)})
		}
	}
	return k.Need(right)
}

// Judged returns the error of the engine, as a *RightError if it is a PermitError.
func (k *Checker) Judged(right trust.Rights, err error) error {
	if beyond, ok := errors.AsType[*engine.PermitError](err); ok {
		err = &RightError{Holder: k.Name, Has: k.Rights, Needs: right, Beyond: beyond}
		k.reject(err)
	}
	return err
}

// reject logs some of the checks that were rejected, because many clients go on without an
// answer.
func (k *Checker) reject(err error) {
	if unlogged, ok := k.checks.rejected.Next(); ok {
		k.log(unlogged, slog.LevelWarn, "check rejected", slog.String("error", err.Error()))
	}
}

// Charged logs some of the charges that were made whether or not they fit: all of a verdict, or,
// if it is one on demands, those with Always. Charges that did not fit lock a client out, so
// they have lines of their own.
func (k *Checker) Charged(v *engine.Verdict, demands []engine.Demand) {
	isAlways := func(r *engine.Result) bool { return demands == nil || demands[r.Demand].Always && r.Cost > 0 }
	var s *engine.Result // the first that did not fit, or the first
	fitted := true
	for i := range v.Results {
		if r := &v.Results[i]; isAlways(r) && (s == nil || fitted && !r.Allowed && !r.Shadow) {
			s, fitted = r, r.Allowed || r.Shadow
		}
	}
	if s == nil {
		return // nothing was charged
	}
	sparse := &k.checks.charged
	if !fitted {
		sparse = &k.checks.exceeded
	}
	unlogged, ok := sparse.Next()
	if !ok {
		return
	}
	var rules []string
	for i := range v.Results {
		r := &v.Results[i]
		if isAlways(r) && !slices.Contains(rules, r.Rule.ID) && len(rules) < maxNamed {
			rules = append(rules, r.Rule.ID)
		}
	}
	// The key has no secret in clear; it is gone when the verdict is.
	k.log(unlogged, slog.LevelInfo, "charged always", slog.String("rules", strings.Join(rules, ",")), slog.String("key", strings.Clone(s.Key)),
		slog.Int64("cost", s.Cost), slog.Bool("fitted", fitted))
}

// Settled does the same for a hold of which more was used than was reserved. While the store is
// unavailable, it is not known what was reserved, and nobody is told later; so the hold then
// counts as one of those.
func (k *Checker) Settled(s *engine.Settled, used engine.Used) {
	message, more := "settled while the store is unavailable", []slog.Attr{slog.Any("used", used)}
	if s.State != weir.HoldPending {
		i := slices.IndexFunc(s.Parts, func(p engine.SettledPart) bool { return p.Used > p.Reserved })
		if i < 0 || s.Repeated {
			return
		}
		p := &s.Parts[i]
		message, more = "settled more than was reserved", []slog.Attr{slog.String("rule", p.Rule), slog.Int64("reserved", p.Reserved), slog.Int64("used", p.Used)}
	}
	if unlogged, ok := k.checks.settled.Next(); ok {
		k.log(unlogged, slog.LevelInfo, message, more...)
	}
}

// maxNamed is how many rules a line names.
const maxNamed = 10

func (k *Checker) log(unlogged int64, level slog.Level, message string, more ...slog.Attr) {
	more = append(more, slog.String("holder", k.Name), slog.String("client", k.Client.String()))
	if unlogged > 0 {
		more = append(more, slog.Int64("unlogged", unlogged))
	}
	k.checks.logger.LogAttrs(context.Background(), level, message, more...)
}

// Sparse lets a few lines into a log in each period, and counts the others.
type Sparse struct {
	Lines int64
	Every time.Duration

	begun, logged, left atomic.Int64
}

// Next reports whether a line is to be logged, and how many were not since the last one.
// If the system's clock was set back, a period begins.
func (s *Sparse) Next() (unlogged int64, ok bool) {
	begun, now := s.begun.Load(), time.Now().UnixNano() // in this order, so that nobody else has begun later than now
	if since := time.Duration(now - begun); (since < 0 || since >= s.Every) && s.begun.CompareAndSwap(begun, now) {
		s.logged.Store(0)
	}
	if s.logged.Add(1) > s.Lines {
		s.left.Add(1)
		return 0, false
	}
	return s.left.Swap(0), true
}
