package httpapi

import (
	"context"
	"fmt"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/engine"
	"github.com/weirhq/weir/middleware/httplimit"
	"github.com/weirhq/weir/rule"
	"github.com/weirhq/weir/store/memory"
)

// act is the attribute by which the guard's own rules tell what an address has done.
const act = "act"

var (
	anyCall  = map[string]string{act: "call"}
	wrongTry = map[string]string{act: "wrong-token"}
)

// maxGuarded is how many addresses the guard remembers.
const maxGuarded = 1 << 14

// newGuard makes weir's own limiter of calls to its management. It is an engine like
// any other, but in memory: it has to hold while the store is away.
func newGuard(o *Options) (*engine.Engine, error) {
	set := &rule.Set{Rules: []rule.Rule{
		guardRule("management", anyCall[act], o.CallLimit, "too many calls of the management from this address"),
		guardRule("wrong-tokens", wrongTry[act], o.FailureLimit, "too many wrong tokens from this address; wait, then send the right one"),
	}}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		return nil, fmt.Errorf("httpapi: CallLimit or FailureLimit: %w", err)
	}
	clock := func() weir.Micros { return weir.Micros(o.Clock().UnixMicro()) }
	guard, err := engine.New(engine.Options{
		Store: memory.New(memory.Options{MaxKeys: maxGuarded, Clock: clock}), Clock: clock,
	})
	if err != nil {
		return nil, err
	}
	guard.Install(table, 1)
	return guard, nil
}

func guardRule(id, what string, l weir.Limit, message string) rule.Rule {
	return rule.Rule{
		ID: id, Match: rule.Match{Attributes: map[string][]string{act: {what}}}, Key: []rule.Source{{Kind: rule.IP}},
		Algorithm: l.Algorithm, Buckets: l.Buckets, CountDenied: l.CountDenied,
		Quota: rule.Quota{Rates: []rule.Rate{{N: l.N, Period: l.Period}}, Burst: l.Burst},
		Deny:  rule.Deny{Message: message},
	}
}

// judge is Check or Peek of an engine.
type judge func(*engine.Engine, context.Context, *rule.Request, *engine.Verdict) error

// within reports whether an address has not done something too often. If it has, that
// is the answer, and none that is worth a line: it costs less to send than to log.
func (h *Handler) within(c *call, ask judge, what map[string]string) bool {
	var v engine.Verdict
	req := rule.Request{IP: c.client, Attributes: what}
	if err := ask(h.guard, c.r.Context(), &req, &v); err != nil {
		c.gone(err)
		return false
	}
	if v.Allowed {
		return true
	}
	c.logged = false
	httplimit.WriteDenial(c, &v, h.options.Clock(), httplimit.AllHeaders)
	return false
}
