package httplimit

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/rule"
)

// PerIP limits every client address to a limit such as "100/1m", in the notation of
// [weir.ParseLimit], in this process:
//
//	http.ListenAndServe(addr, httplimit.PerIP("100/1m")(mux))
//
// It panics if the limit is invalid. See [Options.PerIP] for more.
func PerIP(limit string) func(http.Handler) http.Handler { return Options{}.PerIP(limit) }

// PerHeader limits every value of a header as [PerIP] limits addresses. A request
// without the header is not limited.
func PerHeader(name, limit string) func(http.Handler) http.Handler {
	return Options{}.PerHeader(name, limit)
}

// Per limits every key that the function returns, such as a user, a tenant or a
// session, as [PerIP] limits addresses. A request with the key "" is not limited.
func Per(key func(*http.Request) string, limit string) func(http.Handler) http.Handler {
	return Options{}.Per(key, limit)
}

// PerIP limits every client address. Programs that use the same Store share the usage
// of their clients:
//
//	store, err := redis.Open("redis://localhost:6379")
//	limit := httplimit.Options{Store: store}.PerIP("100/1m")
//
// It panics if the limit or the options are invalid.
func (o Options) PerIP(limit string) func(http.Handler) http.Handler {
	return o.per("ip", limit)
}

// PerHeader limits every value of a header, such as X-API-Key. If the name of the
// header sounds secret, the store contains only hashes of the values. A request without
// the header is not limited.
func (o Options) PerHeader(name, limit string) func(http.Handler) http.Handler {
	return o.per("header:"+name, limit)
}

// Per limits every key that the function returns, such as a user, a tenant or a
// session. The function must not trust what the client claims without proof. A request
// with the key "" is not limited.
func (o Options) Per(key func(*http.Request) string, limit string) func(http.Handler) http.Handler {
	if key == nil {
		panic(errors.New("httplimit: Per requires a function that returns the client of a request"))
	}
	o.User, o.UserHeader = key, ""
	return o.per("user", limit)
}

// per is a middleware with one rule.
func (o Options) per(key, limit string) func(http.Handler) http.Handler {
	m, err := o.single(key, limit)
	if err != nil {
		panic(err)
	}
	return m.Wrap
}

func (o Options) single(key, limit string) (*Middleware, error) {
	l, err := weir.ParseLimit(limit)
	if err != nil {
		return nil, fmt.Errorf("httplimit: limit %q: %w", limit, err)
	}
	source, err := rule.ParseSource(key)
	if err != nil {
		return nil, fmt.Errorf("httplimit: %w", err)
	}
	name := cmp.Or(o.Name, "per-"+strings.ToLower(strings.ReplaceAll(key, ":", "-")))
	table, err := rule.Compile(&rule.Set{Rules: []rule.Rule{{
		ID: name, Key: []rule.Source{source},
		Algorithm: l.Algorithm, Quota: rule.Quota{Rates: []rule.Rate{{N: l.N, Period: l.Period}}, Burst: l.Burst, Zone: l.ZoneName(), Starts: l.Starts},
		Buckets: l.Buckets, Shape: l.Shape, CountDenied: l.CountDenied,
	}}}, rule.Options{})
	if err != nil {
		return nil, err
	}
	e, err := engine.New(engine.Options{Store: o.Store})
	if err != nil {
		return nil, err
	}
	e.Install(table, 1)
	o.Store, o.Name = nil, ""
	return New(e, o)
}
