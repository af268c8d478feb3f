package rule

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/match"
	"github.com/weirhq/weir/internal/notation"
)

// Compile prepares a set for use. Do not change the set afterwards. Every set that
// [Parse] accepts compiles; for other sets the error names each invalid rule.
func Compile(set *Set, o Options) (*Table, error) {
	o.IPv6Bits = cmp.Or(o.IPv6Bits, 64)
	if o.IPv6Bits < 1 || o.IPv6Bits > 128 {
		return nil, fmt.Errorf("rule: IPv6Bits: %d is out of range; write 1 to 128, or 0 for 64", o.IPv6Bits)
	}
	c := compiler{
		Options: o,
		ids:     make(map[string]*Entry, len(set.Rules)),
		matches: match.Compiler{IgnoreCase: o.IgnoreCase},
		limits:  map[weir.Limit]*weir.Compiled{},
		levels:  set.Levels,
	}
	if err := validateLevels(set.Levels); err != nil {
		return nil, fmt.Errorf("rule: levels: %w", err)
	}
	t := &Table{byID: c.ids, headers: map[string]bool{}, client: newClientParts(o.IPv6Bits)}
	var wrong []error
	for i := range set.Rules {
		r := &set.Rules[i]
		compiled, err := c.rule(r, len(t.rules))
		if err != nil {
			wrong = append(wrong, fmt.Errorf("rule: %s: %w", r.ID, err))
		}
		t.rules = append(t.rules, compiled)
	}
	var err error
	if t.exempt, err = newList(set.Exempt); err != nil {
		wrong = append(wrong, fmt.Errorf("rule: exempt: %w", err))
	}
	if t.block, err = newList(set.Block); err != nil {
		wrong = append(wrong, fmt.Errorf("rule: block: %w", err))
	}
	if err := c.Prices.Problems(set).Err(); err != nil {
		wrong = append(wrong, err)
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	ready := make([]*match.Rule, len(t.rules))
	for i, r := range t.rules {
		t.addUnit(r.Rule)
		if r.Mode != Off {
			ready[i] = r.match
			t.settles = t.settles || r.Settles()
			t.concurrent = t.concurrent || r.Concurrent()
		}
		t.conditional = t.conditional || r.when != nil
		t.readsBody = t.readsBody || r.Mode != Off && r.readsRequest()
		for _, p := range r.key {
			if p.source.Kind == Header {
				t.headers[p.source.Name] = true
			}
		}
	}
	if t.tokens, err = c.readers(t, func(r *Rule) bool { return r.Tokens != nil }); err != nil {
		return nil, err
	}
	if t.mcp, err = c.readers(t, func(r *Rule) bool { return r.MCP != nil }); err != nil {
		return nil, err
	}
	t.index = t.newIndex(&c, ready)
	return t, nil
}

// compiler is what the rules of a set share.
type compiler struct {
	Options
	ids     map[string]*Entry
	matches match.Compiler
	limits  map[weir.Limit]*weir.Compiled // equal limits are one, which stores send once
	levels  []string
}

func (c *compiler) rule(r *Rule, order int) (*Entry, error) {
	if r.ID == "" {
		return nil, errors.New("id: required; give the rule a name that no other rule has")
	}
	if len(r.ID) > MaxIDLen {
		return nil, fmt.Errorf("id: it has %d bytes, at most %d are allowed", len(r.ID), MaxIDLen)
	}
	if c.ids[r.ID] != nil {
		return nil, errors.New("id: another rule has the same id, and the two would share their usage; rename one")
	}
	if err := r.validateUnit(); err != nil {
		return nil, fmt.Errorf("unit: %w", err)
	}
	if err := r.validateMCP(); err != nil {
		return nil, fmt.Errorf("mcp: %w", err)
	}
	out := &Entry{Rule: r, order: order, failed: c.Failed, prices: c.Prices, money: r.currency()}
	c.ids[r.ID] = out
	var err error
	if out.match, err = c.matches.Compile(r.Match.indexed()); err != nil {
		return nil, fmt.Errorf("match: %w", err)
	}
	if err := r.validateLevels(c.levels); err != nil {
		return nil, err
	}
	if out.key, err = newKey(r, out.match, c.IPv6Bits, c.levels); err != nil {
		return nil, err
	}
	if err := errors.Join(r.validateConcurrency(), r.Wait.validate(), r.validatePriorities(), r.Shares.validate(), r.Count.validate(), r.Tokens.validate(), validateThresholds(r.Warn)); err != nil {
		return nil, err
	}
	if err := errors.Join(c.penalty(out), c.fallback(out)); err != nil {
		return nil, err
	}
	if err := c.expressions(out); err != nil {
		return nil, err
	}
	return out, c.quotas(out)
}

// readers makes the index of rules that read the body of requests to match them, or nil if there are none.
func (c *compiler) readers(t *Table, reads func(*Rule) bool) (*readers, error) {
	ready, some := make([]*match.Rule, len(t.rules)), false
	for i, r := range t.rules {
		if r.Mode == Off || !reads(r.Rule) {
			continue
		}
		conditions := r.Match.indexed()
		conditions.Attributes = nil
		var err error
		if ready[i], err = c.matches.Compile(conditions); err != nil {
			return nil, fmt.Errorf("rule: %s: match: %w", r.ID, err)
		}
		some = true
	}
	if !some {
		return nil, nil
	}
	return &readers{t.newIndex(c, ready)}, nil
}

func (t *Table) newIndex(c *compiler, ready []*match.Rule) *match.Index[Hit] {
	hits := make([]Hit, len(t.rules))
	for i, r := range t.rules {
		hits[i].Entry = r
	}
	return match.NewIndex(&c.matches, hits, ready,
		func(h Hit) (int, match.Route) { return h.order, h.route },
		func(h Hit, route match.Route) Hit { return Hit{Entry: h.Entry, route: route} })
}

// indexed are the conditions that the index answers.
func (m *Match) indexed() match.Conditions {
	return match.Conditions{Methods: m.Methods, Hosts: m.Hosts, Paths: m.Paths, Attributes: m.Attributes}
}

// Usable parses and compiles a document and returns its set. If that fails, the error
// is an *InvalidError with all problems. The name is as in [Parse].
func Usable(name string, source []byte) (*Set, error) {
	set, problems := Parse(name, source)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	// What was parsed compiles, but this is the last gate before all instances.
	if _, err := Compile(set, Options{}); err != nil {
		return nil, err
	}
	return set, nil
}

// quotas compiles all limits of a rule.
func (c *compiler) quotas(out *Entry) (err error) {
	r := out.Rule
	if len(r.Quota.Levels) > 0 {
		err = c.compileLevels(out)
	} else {
		out.quota, err = c.quota(r, r.Quota, r.Quota)
	}
	if err != nil {
		return err
	}
	out.special = r.hasQuota(func(q Quota) bool { return q.Priority != 0 })
	out.tiers = make(map[string]prioritized, len(r.Tiers))
	for _, tier := range slices.Sorted(maps.Keys(r.Tiers)) {
		if out.tiers[tier], err = c.prioritized(r, r.Quota, r.Tiers[tier]); err != nil {
			return fmt.Errorf("tiers: %s: %w", tier, err)
		}
	}
	out.overrides = make(map[string]prioritized, len(r.Overrides))
	for _, text := range slices.Sorted(maps.Keys(r.Overrides)) {
		identity, err := canonicalIdentity(out.key, text)
		if err != nil {
			return fmt.Errorf("overrides: %s: %w", discreet(out.key, text), err)
		}
		if _, twice := out.overrides[identity]; twice {
			return fmt.Errorf("overrides: %s is given twice, in different spellings; remove one", identity)
		}
		if out.overrides[identity], err = c.prioritized(r, r.quotaAt(out.Level(identity)), r.Overrides[text]); err != nil {
			return fmt.Errorf("overrides: %s: %w", identity, err)
		}
	}
	return nil
}

func (c *compiler) prioritized(r *Rule, usual, q Quota) (prioritized, error) {
	if len(usual.Levels) > 0 {
		return prioritized{nil, q.Priority}, nil // see compileLevels
	}
	limits, err := c.quota(r, usual, q)
	return prioritized{limits, q.Priority}, err
}

// inherit adds what a tier or an override does not say. A burst belongs to its rates.
func (q Quota) inherit(usual Quota) Quota {
	if q.Unlimited || len(q.Rates) == 0 && q.Concurrency == 0 {
		return q
	}
	if len(q.Rates) == 0 {
		q.Rates, q.Burst = usual.Rates, usual.Burst
	}
	q.Concurrency = cmp.Or(q.Concurrency, usual.Concurrency)
	return q
}

func (c *compiler) quota(r *Rule, usual, q Quota) (quota, error) {
	switch q = q.inherit(usual); {
	case q.Unlimited && (len(q.Rates) > 0 || q.Concurrency > 0):
		return nil, errors.New("limit: unlimited cannot be combined with a limit; remove one")
	case q.Unlimited:
		return nil, nil
	case len(q.Rates) == 0 && q.Concurrency == 0:
		return nil, errors.New("limit: required; write for example 100/1m, or unlimited")
	}
	var out quota
	for _, rate := range q.Rates {
		if wrong := r.wrongMoney(rate); wrong != "" {
			return nil, invalidQuota("limit", "%s", wrong)
		}
		l, err := r.limit(q, rate)
		if err != nil {
			return nil, err
		}
		if err := r.validateCounting(l); err != nil {
			return nil, err
		}
		limit, err := c.limit(l)
		if err != nil {
			return nil, err
		}
		if out.has(limit.Kind()) {
			return nil, fmt.Errorf("limits: two limits have the period %s and would count every request twice; keep the smaller one", notation.FormatDuration(rate.Period))
		}
		out = append(out, limit)
	}
	if q.Concurrency != 0 {
		limit, err := c.limit(r.places(q))
		if err != nil {
			return nil, err
		}
		out = append(out, limit)
	}
	return out, nil
}

// limit is one rate of a quota under the rule.
func (r *Rule) limit(q Quota, rate Rate) (weir.Limit, error) {
	l := weir.Limit{
		Name: r.ID, Algorithm: r.Algorithm, N: rate.N, Period: rate.Period,
		Burst: q.Burst, Buckets: r.Buckets, Shape: r.Shape, CountDenied: r.CountDenied && !r.UnlessDeniedEarlier,
		Release: r.OnExpiry == Release, Lease: cmp.Or(q.Lease, r.Lease),
	}
	return l, r.follow(&l, q, rate)
}

// validateCounting reports why a limit cannot count what is denied, if it does not do so by itself.
func (r *Rule) validateCounting(l weir.Limit) error {
	if !r.UnlessDeniedEarlier {
		return nil
	}
	if !r.CountDenied {
		return invalidQuota("count_denied", "UnlessDeniedEarlier is for CountDenied, which is false; set both, or none")
	}
	l.CountDenied = true
	return l.Validate()
}

func (c *compiler) limit(l weir.Limit) (*weir.Compiled, error) {
	if known := c.limits[l]; known != nil {
		return known, nil
	}
	compiled, err := l.Compile()
	if err != nil {
		return nil, err
	}
	c.limits[l] = compiled
	return compiled, nil
}
