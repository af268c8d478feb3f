package rule

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/match"
	"github.com/weirhq/weir/internal/notation"
)

// checkSet checks what can only be seen when all is read.
func (p *parser) checkSet() {
	p.checkIDs()
	p.checkLevelUses()
	p.checkTwins()
	p.checkMethodCount()
	p.warn()
}

func (p *parser) checkIDs() {
	first := make(map[string]int, len(p.read))
	for i := range p.read {
		id := p.set.Rules[i].ID
		if id == "" {
			continue
		}
		if before, twice := first[id]; twice {
			p.report.rule = id
			p.errorf("E009", p.read[i].id, "id", "the rule in line %d has the same id %s, and the two would share their usage; rename one", p.read[before].id.Line, id)
			continue
		}
		first[id] = i
	}
	p.report.rule = ""
}

// checkTwins finds rules that do the same: whatever one of them allows or denies,
// so does the other.
func (p *parser) checkTwins() {
	first := make(map[[sha256.Size]byte]int, len(p.read)) // by a hash, since rules may be long
	for i := range p.read {
		twin := p.set.Rules[i]
		if p.read[i].broken || twin.Mode == Off {
			continue
		}
		twin.ID, twin.Description, twin.Deny = "", "", Deny{}
		key := sha256.Sum256(ruleElement(&twin).JSON())
		if before, found := first[key]; found {
			p.report.rule = p.set.Rules[i].ID
			p.errorf("E025", p.read[i].at, "", "this rule duplicates %s in line %d and never denies anything more; remove it, or change match, key or limit", p.set.Rules[before].ID, p.read[before].at.Line)
			continue
		}
		first[key] = i
	}
	p.report.rule = ""
}

// checkMethodCount keeps a promise to Compile.
func (p *parser) checkMethodCount() {
	known := map[string]bool{}
	for i := range p.read {
		for _, m := range p.set.Rules[i].Match.Methods {
			known[m] = true
		}
		if len(known) > match.MaxMethods {
			p.errorf("E021", p.read[i].at, "match: method", "all rules together have %d different methods; the maximum is %d; remove method where it is not needed", len(known), match.MaxMethods)
			return
		}
	}
}

// checkOverrides finds identities that no client of the rule can have, and those
// that are one client's in two spellings.
func (p *parser) checkOverrides(r *pending) {
	e := r.fields["overrides"]
	if e == nil {
		return
	}
	conditions, err := new(match.Compiler).Compile(r.Match.indexed())
	if err != nil {
		return // it was reported
	}
	key, err := newKey(&r.Rule, conditions, 64, nil)
	if err != nil {
		return // it was reported
	}
	first := map[string]document.Position{}
	for _, m := range e.Members {
		text := m.Name.Text
		if text == "" || m.Name.Kind == document.Nothing {
			continue
		}
		identity, err := canonicalIdentity(key, text)
		switch at, twice := first[identity]; {
		case err != nil && tellsSecret(r.Key, text):
			p.errorf("E023", m.Name.Position, "overrides", "no client has this key, because the rule's key is %s; write it as %s", sourcesText(r.Key), example(key))
		case err != nil:
			p.errorf("E023", m.Name.Position, "overrides", "no client has the key %s, because the rule's key is %s: %v", document.Quote(text), sourcesText(r.Key), err)
		case twice && at.Line > 0:
			p.errorf("E023", m.Name.Position, "overrides", "this is the same client as in line %d, in another spelling; remove one", at.Line)
		default:
			first[identity] = m.Name.Position
		}
	}
}

// names are those that overrides or tiers are for.
func (r *pending) names(field string) []placed[string] {
	e := r.fields[field]
	if e == nil || len(e.Members) == 0 {
		return nil
	}
	names := make([]placed[string], len(e.Members))
	for i, m := range e.Members {
		names[i] = placed[string]{m.Name.Text, m.Name.Position}
	}
	return names
}

// tellsSecret is whether an override names a client by something that must not be
// shown.
func tellsSecret(key []Source, text string) bool {
	return !strings.Contains(text, marker) && (slices.ContainsFunc(key, Source.secret) || strings.Contains(text, prefixAPIKey))
}

func sourcesText(key []Source) string { return strings.Join(textsOf(key), " and ") }

// checkLimits compiles every limit of a rule, as Compile will.
func (p *parser) checkLimits(r *pending) {
	limited := r.hasQuota(func(q Quota) bool { return !q.Unlimited && len(q.Levels) == 0 })
	p.checkCalendars(r)
	for _, q := range r.quotas {
		p.checkQuota(r, q)
	}
	p.checkConcurrency(r)
	for _, q := range r.quotas {
		if q.lease != nil && r.Penalty.For != 0 {
			p.errorf("E039", q.lease.Position, q.whose+"lease", "units of a rule with a penalty cannot be leased, because each denial is counted; remove one of them")
		}
	}
	if !limited && !r.isPrioritizing() {
		p.errorf("E024", cmp.Or(r.fields["limit"], r.fields["levels"]).Position, "limit", "the rule limits no client; write a limit, or one for a tier, or remove the rule")
	}
}

func (p *parser) checkQuota(r *pending, q placedQuota) {
	capacity := int64(math.MaxInt64)
	for i, rate := range q.Rates {
		if slices.ContainsFunc(q.Rates[:i], func(other Rate) bool { return other.Period == rate.Period }) {
			p.errorf("E015", q.rates[i], q.whose+"limits", "%s", samePeriod(rate.Period)) // they would share their count
		}
		if wrong := r.wrongMoney(rate); wrong != "" {
			p.errorf("E042", q.rates[i], q.whose+"limit", "%s", wrong)
			continue
		}
		l, err := r.limit(q.Quota, rate)
		if err != nil {
			continue // about its zone, which was reported
		}
		if r.fields["algorithm"] != nil {
			l.Algorithm = r.Algorithm
		}
		compiled, err := l.Compile()
		if err == nil {
			err = r.validateCounting(l)
		}
		if err != nil {
			p.limitError(r, q, q.rates[i], err)
			continue
		}
		capacity = min(capacity, compiled.Capacity())
		p.checkShares(r, q, compiled)
	}
	if q.Concurrency > 0 {
		if compiled, err := r.places(q.Quota).Compile(); err == nil {
			p.checkShares(r, q, compiled)
		}
	}
	if cost := max(r.Cost, 1); cost > capacity && !q.Unlimited {
		at, field := q.at, q.whose
		if q.whose == "" {
			at = r.fields["cost"].Position
		}
		p.errorf("E016", at, field+"cost", "%s", tooCostly(cost, capacity))
	}
}

// limitError puts an error of package weir where the field at fault stands.
func (p *parser) limitError(r *pending, q placedQuota, at document.Position, err error) {
	invalid, ok := errors.AsType[*weir.InvalidError](err)
	if !ok {
		p.errorf("E013", at, q.whose+"limit", "%v", err)
		return
	}
	code, whose := "E013", q.whose
	switch field := invalid.Field; field {
	case "algorithm":
		p.errorf("E032", r.fields["algorithm"].Position, "algorithm", "%s", q.whose+otherAlgorithm(r.Algorithm))
		return
	case "burst":
		if q.burst != nil {
			at = q.burst.Position
		}
		if !leaks(r.Algorithm) {
			code = "E014"
		}
	case "lease":
		code = "E039"
		if q.lease != nil {
			at = q.lease.Position
		} else {
			at, whose = r.field(field), ""
		}
	case "buckets", "shape", "count_denied":
		if e := r.fields[field]; e != nil {
			at = e.Position
		}
		whose = ""
		if field != "buckets" || r.Algorithm != weir.SlidingBuckets {
			code = "E014"
		}
	}
	p.errorf(code, at, whose+invalid.Field, "%s", invalid.Reason)
}

// leaseField is for how long instances can have units. What excludes it is found with the limits.
func leaseField[T any](of func(*T) *time.Duration) field[T] {
	return field[T]{"lease", func(p *parser, e *document.Element, field string, to *T) {
		*of(to) = p.span(e, "E039", field, func(d time.Duration, text string) string {
			if d%time.Microsecond != 0 {
				d = 0
			}
			return outside(d, text, weir.MinLease, weir.MaxLease)
		})
	}, func(from *T) *document.Element { return unless(0, *of(from), spanElement) }}
}

// fewUnits is what a client must have at least so that a lease saves calls: of two instances, each asks for its first two
// requests, and then for parts of what is left.
const fewUnits = 20

// warnLease finds leases that do harm, or nothing.
func (p *parser) warnLease(r *pending, q *placedQuota, rate Rate) {
	lease, at, whose := cmp.Or(q.Lease, r.Lease), r.field("lease"), ""
	if lease == 0 {
		return
	}
	if q.Lease != 0 && q.lease != nil {
		at, whose = q.lease.Position, q.whose
	}
	if lease > rate.Period/10 {
		p.warnf("W022", at, whose+"lease", "%s is longer than a 10th of the period of %s; write at most %s, or remove it", notation.FormatDuration(lease), rate, notation.FormatDuration((rate.Period / 10).Truncate(time.Microsecond)))
	}
	if q.Lease == 0 && q.whose != "" {
		return // of few clients of a rule that leases for others
	}
	switch {
	case max(q.Concurrency, r.Quota.Concurrency) > 0:
		p.warnf("W023", at, whose+"lease", "each request asks the store for its place, because of concurrency; put the limit into a rule of its own without one, or remove the lease")
	case max(rate.N, q.Burst) < fewUnits:
		p.warnf("W023", at, whose+"lease", "%s is less than %d units, too few to be leased to two instances; remove the lease", rate, fewUnits)
	}
}

// leaks is whether an algorithm has a burst.
func leaks(a weir.Algorithm) bool { return a == weir.TokenBucket || a == weir.LeakyBucket }
