package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Standing puts the usage of a client under a rule into v. Without an id, it covers
// every rule that counts by such keys, whether or not its conditions are met, so that
// all limits of the client are included. The key is written as in an override, such as
// "user:alice", but may lack parts that the rule names: see [rule.Entry.ParseIdentities].
// The tier selects the limits; without one, Standing uses the tier of the
// client's last request to this engine, if it is known.
func (e *Engine) Standing(ctx context.Context, id, key, tier string, v *Verdict) (Tier, error) {
	v.clear()
	in := e.installed.Load()
	v.Version = in.version
	clients, err := in.clientsOf(id, key)
	if err != nil {
		return Tier{}, err
	}
	clients = slices.DeleteFunc(clients, func(c client) bool { return c.rule.Mode == rule.Off })
	found := e.lastTier(in, clients)
	if tier != "" && found.From != NoTier {
		found = Tier{tier, AskedTier}
	}
	for _, c := range clients {
		v.addClient(in, c, found.Name)
	}
	v.endGroup(enforced)
	for part := range slices.Chunk(v.Results, weir.MaxOps) {
		ops := v.opsOf(part)
		for i := range ops {
			ops[i].Cost = 0
		}
		if err = e.askResults(ctx, e.store.Peek, v, part, ops); err != nil {
			return found, fmt.Errorf("engine: %w", err)
		}
	}
	v.conclude()
	return found, nil
}

// addClient puts the limits that apply to a client on the list. A tier in its key is its tier.
func (v *Verdict) addClient(in *installed, c client, tier string) {
	if own, told := c.rule.TierOf(c.key); told {
		tier = own
	}
	limits, override := in.limits(c.rule, c.key, tier, nil)
	for _, limit := range limits {
		v.Results = append(v.Results, Result{Rule: c.rule, Compiled: limit, Override: override, Key: c.key, Shadow: !c.rule.Mode.Denies(), Soft: c.rule.Mode == rule.Soft})
	}
	if len(limits) > 0 {
		v.addPenalty(c.rule, c.key)
	}
}

// Reset clears the usage of a client under a rule or, without an id, under every rule
// that counts by such keys, whatever its tier is or was. Its requests in flight still count.
// It returns the rules.
func (e *Engine) Reset(ctx context.Context, id, key string) ([]string, error) {
	in := e.installed.Load()
	clients, err := in.clientsOf(id, key)
	if err != nil {
		return nil, err
	}
	var rules []string
	for _, c := range clients {
		for part := range slices.Chunk(in.everyLimit(c), weir.MaxOps) {
			ops := make([]weir.Op, len(part))
			for i, limit := range part {
				ops[i] = weir.Op{Key: c.key, Limit: limit}
				e.told.forget(e.usageKey(c.key, limit))
			}
			for _, store := range e.stores() {
				if err := store.Reset(ctx, ops...); err != nil {
					return rules, fmt.Errorf("engine: %w", err)
				}
			}
		}
		if len(rules) == 0 || rules[len(rules)-1] != c.rule.ID {
			rules = append(rules, c.rule.ID)
		}
	}
	return rules, nil
}

// everyLimit are limits of each kind that a client may have usage under.
func (in *installed) everyLimit(c client) []*weir.Compiled {
	limits := append(c.rule.Every(), c.rule.EveryMarker(c.key)...)
	if r := in.replacementOf(c); r != nil { // to reset one kind twice does no harm
		limits = c.rule.AppendMarkers(append(limits, r.limits...), r.limits)
	}
	if in.clients != nil {
		if own, ok := in.clients.limitsOf(c.rule, c.key, "", nil); ok {
			limits = c.rule.AppendMarkers(append(limits, own...), own)
		}
	}
	// Requests in flight are still there after a reset.
	return slices.DeleteFunc(limits, func(limit *weir.Compiled) bool { return limit.Algorithm() == weir.InFlight })
}

// clientsOf finds who the key is under a rule, or under all that count by such keys.
func (in *installed) clientsOf(id, key string) ([]client, error) {
	rules := in.table.Rules()
	if id != "" {
		if rules = []*rule.Entry{in.table.Find(id)}; rules[0] == nil {
			return nil, &NoRuleError{ID: id}
		}
	}
	var found []client
	wrong := errors.New(`no rule counts by such keys; write it as in "user:alice" or "ip:203.0.113.7"`)
	for _, c := range rules {
		identities, err := c.ParseIdentities(key)
		if err != nil && id != "" {
			wrong = err
		}
		for _, identity := range identities {
			found = append(found, client{c, identity})
		}
	}
	if len(found) == 0 {
		return nil, &KeyError{Rule: id, Err: wrong}
	}
	return found, nil
}

// NoRuleError reports a rule that does not exist.
type NoRuleError struct{ ID string }

func (e *NoRuleError) Error() string { return fmt.Sprintf("engine: there is no rule %q", e.ID) }

// KeyError reports a key that does not fit any rule, or does not fit the given rule: a rule
// with key user counts by keys such as "user:alice".
type KeyError struct {
	Rule string
	Err  error
}

func (e *KeyError) Error() string {
	if e.Rule == "" {
		return fmt.Sprintf("engine: the key: %v", e.Err)
	}
	return fmt.Sprintf("engine: the key under the rule %q: %v", e.Rule, e.Err)
}

func (e *KeyError) Unwrap() error { return e.Err }

// Refund gives back what a verdict charged, for a request that failed after it was
// allowed. It cancels a hold.
func (e *Engine) Refund(ctx context.Context, v *Verdict) error {
	if !v.Allowed {
		return nil
	}
	if v.places > 0 {
		defer e.wakeAll(v)
	}
	holds := v.others
	if v.Hold != (weir.HoldID{}) {
		holds = append(holds, v.Hold)
	}
	for _, id := range holds {
		if _, err := e.Cancel(ctx, id); err != nil {
			return err
		}
	}
	var errs [2]error
	for n, store := range e.stores() {
		v.ops = v.ops[:0]
		for i := range v.Results {
			if r := &v.Results[i]; r.Receipt != 0 && !r.held && r.Local == (n == 1) {
				v.ops = append(v.ops, weir.Op{Key: r.Key, Limit: r.Compiled, Cost: r.Cost, Receipt: r.Receipt})
			}
		}
		if len(v.ops) > 0 {
			errs[n] = store.Refund(ctx, v.ops...)
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	e.observeCharged(v, -1)
	return nil
}

// stores are the store and, for results that are Local, that of this process.
func (e *Engine) stores() [2]weir.Store { return [...]weir.Store{e.store, e.local} }
