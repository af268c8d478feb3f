package rule

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
)

// warn reports what is valid but probably not intended. It skips what could not be
// parsed.
func (p *parser) warn() {
	exempt := p.exempt()
	p.warnLists(exempt)
	for i := range p.read {
		r, rest := &p.set.Rules[i], &p.read[i]
		if rest.broken || r.Mode == Off {
			continue
		}
		p.report.rule = r.ID
		p.warnKey(r, rest.key)
		p.warnOverrides(r, rest.overrides, exempt)
	}
	p.report.rule = ""
}

// exempt holds the exempt clients, as far as they are compared with others.
func (p *parser) exempt() *list {
	if p.quotas == 0 && p.set.Block.isEmpty() {
		return new(list)
	}
	exempt, err := newList(p.set.Exempt)
	if err != nil {
		return new(list) // cannot be: what is in the set was read by us, and is good
	}
	return &exempt
}

// field is where a field stands, or else the rule.
func (r *pending) field(name string) document.Place {
	if e := r.fields[name]; e != nil {
		return e.Place
	}
	return r.at
}

func (r *Rule) matchesAll() bool {
	m := r.Match
	return len(m.Methods) == 0 && len(m.Hosts) == 0 && len(m.Paths) == 0 && len(m.Attributes) == 0 && m.When == ""
}

// largeLog is the number of units from which a log is felt: 80 KB a client.
const largeLog = 10_000

func (p *parser) warnLimits(r *pending) {
	for _, q := range r.quotas {
		for i, rate := range q.Rates {
			if r.Algorithm == weir.SlidingLog && rate.N > largeLog {
				p.warnf("W007", q.rates[i], q.whose+"limit", "a sliding_log of %d units takes up to %d KB per client; sliding_window and sliding_buckets take less than 1 KB", rate.N, rate.N*8/1000)
			}
			if other, ok := r.stricter(q.Quota, i); ok {
				p.warnf("W009", q.rates[i], q.whose+"limits", "%s never denies a request, because %s always denies it first; remove one, or check their numbers", rate, other)
			}
		}
	}
	if r.matchesAll() && len(r.Key) == 1 && r.Key[0].Kind == Global && len(r.Quota.Rates) > 0 && r.Quota.Concurrency == 0 && allSlow(r.Quota.Rates) {
		p.warnf("W008", r.quotas[0].rates[0], "limit", "all clients together get less than one request per second; if the limit is meant for each client, choose another key")
	}
}

func allSlow(rates []Rate) bool {
	return !slices.ContainsFunc(rates, func(r Rate) bool { return time.Duration(r.N) >= r.Period/time.Second })
}

func (p *parser) warnFailure(r *pending) {
	if word := loginWord(&r.Rule); word != "" && r.OnFailure == Open {
		p.warnf("W006", r.field("on_failure"), "on_failure", "this looks like a rule against guessing (%s), and it allows everything while the store is unavailable; write local or closed", word)
	}
	if r.OnFailure == Open && r.usualFailure() != Open {
		p.warnf("W017", r.field("on_failure"), "on_failure", "the rule is a budget, and allows everything while the store is unavailable; write local or closed")
	}
	if r.OnFailure == Closed && r.matchesAll() && r.Mode == Enforce {
		p.warnf("W014", r.field("on_failure"), "on_failure", "the rule matches every request, so all requests are denied while the store is unavailable; write local, or match fewer requests")
	}
}

// loginWord is what makes a rule look as if it were there to stop guessing.
func loginWord(r *Rule) string {
	for _, text := range append([]string{r.ID}, r.Match.Paths...) {
		text = strings.ToLower(text)
		for _, part := range []string{"login", "signin", "sign-in", "sign_in", "password", "passwd"} {
			if strings.Contains(text, part) {
				return part
			}
		}
		for _, word := range strings.FieldsFunc(text, func(c rune) bool { return c < '0' || c > 'z' }) {
			if word == "otp" || word == "token" && text[0] == '/' {
				return word
			}
		}
	}
	return ""
}

// forwarded are headers that anybody can write, and that name an address.
var forwarded = []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip"}

func (p *parser) warnKey(r *Rule, at document.Place) {
	chosen, named := true, true // by the client or the rule, or by the rule, all of it
	for _, s := range r.Key {
		if s.Kind == Header && slices.Contains(forwarded, s.Name) {
			p.warnf("W010", at, "key", "a client can send any value in %s and count as a new client each time; use ip, and list your proxies in --trusted-proxies", s.Name)
			return
		}
		chosen = chosen && (s.Kind == Header || s.Kind == Cookie || s.Kind == Query || s.Kind.isNamed())
		named = named && s.Kind.isNamed()
		if what := r.constant(s.Kind); what != "" {
			p.warnf("W016", at, "key", "%s is the same for all requests of the rule; %s", s, what)
		}
	}
	if chosen && !named && !p.single && !p.backstop() {
		p.warnf("W011", at, "key", "a client that omits %s or invents a value is not limited; add a rule with key ip or global", sourcesText(unnamed(r.Key)))
	}
}

// unnamed are the parts of a key that clients choose.
func unnamed(key []Source) []Source {
	return slices.DeleteFunc(slices.Clone(key), func(s Source) bool { return s.Kind.isNamed() })
}

// constant is what to do about a part of the key that tells nothing apart; "" if it does.
func (r *Rule) constant(kind SourceKind) string {
	switch {
	case kind == Route && len(r.Match.Paths) < 2:
		return `list the endpoints that should count separately, as in path: [/orders, "/orders/{id}", /**], or remove route`
	case kind == Host && len(r.Match.Hosts) < 2:
		return `list the hosts that should count separately, as in host: [api.example.com, "*"], or remove host`
	case kind == Method && len(r.Match.Methods) == 1:
		return "list the methods that should count separately, or remove method here or there"
	case kind == Tier && len(r.Tiers) == 0:
		return "add tiers, because other tiers share one key, or remove tier"
	}
	return ""
}

// backstop is whether some rule counts by what a client can neither choose nor
// leave out.
func (p *parser) backstop() bool {
	if p.backed == nil {
		found := false
		for i := range p.read {
			r := &p.set.Rules[i]
			found = found || p.read[i].broken || r.Mode != Off && !slices.ContainsFunc(r.Key, func(s Source) bool {
				return s.Kind != IP && s.Kind != Global && !s.Kind.isNamed()
			})
		}
		p.backed = &found
	}
	return *p.backed
}

// stricter finds a rate of the quota by which the i-th is never reached. Of two that
// are equally strict, the second is superfluous.
func (r *Rule) stricter(q Quota, i int) (Rate, bool) {
	a := r.Algorithm
	for j, other := range q.Rates {
		if r.isCalendar(q, other) || r.isCalendar(q, q.Rates[i]) {
			continue // their periods differ in length, and begin anywhere
		}
		if j != i && covers(a, q.Burst, other, q.Rates[i]) && (j < i || !covers(a, q.Burst, q.Rates[i], other)) {
			return other, true
		}
	}
	return Rate{}, false
}

// covers reports whether a client within one rate is always within the other. In doubt
// it returns false.
func covers(a weir.Algorithm, burst int64, one, other Rate) bool {
	if leaks(a) {
		// A bucket is kept by what fits into a smaller one that refills no faster.
		smaller := burst != 0 || one.N <= other.N
		return smaller && compareProducts(one.N, int64(other.Period), other.N, int64(one.Period)) <= 0
	}
	return compareProducts(touched(a, one, other), one.N, other.N, 1) <= 0
}

// touched is how many periods of the one a period of the other can reach into.
func touched(a weir.Algorithm, one, other Rate) int64 {
	whole, rest := int64(other.Period/one.Period), other.Period%one.Period
	switch {
	case a == weir.SlidingWindow: // an estimate can be one period's worth too high
		return whole + 2
	case rest == 0:
		return whole
	case a != weir.FixedWindow: // its periods may lie anywhere, and so in a row
		return whole + 1
	case one.Period%other.Period == 0: // aligned, one window is within the other
		return 1
	}
	return whole + 2
}

// compareProducts compares a×b with c×d, all positive, whatever their size.
func compareProducts(a, b, c, d int64) int {
	high1, low1 := bits.Mul64(uint64(a), uint64(b))
	high2, low2 := bits.Mul64(uint64(c), uint64(d))
	return cmp.Or(cmp.Compare(high1, high2), cmp.Compare(low1, low2))
}
