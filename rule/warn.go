package rule

import (
	"cmp"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
	"github.com/weirhq/weir/internal/notation"
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
	p.warnTiers()
	p.warnEarlier()
	p.warnAsking()
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
func (r *pending) field(name string) document.Position {
	if e := r.fields[name]; e != nil {
		return e.Position
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
			p.warnLease(r, &q, rate)
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

// warnMoney finds rules under which requests cost next to nothing because nobody says what they cost.
func (p *parser) warnMoney(r *pending) {
	if currency := currencyName(r.currency()); currency != "" && r.Tokens == nil && r.Cost == 0 && r.CostEstimate == "" && r.CostActual == "" {
		p.warnf("W024", r.field("limit"), "limit", "the rule counts %s, and does not say what a request costs, so one that does not say it itself costs a millionth; give it tokens with a price, or a cost", currency)
	}
}

func (p *parser) warnFailure(r *pending) {
	open, late := r.FailureAfter(maxFallback) == Open, ""
	if r.OnFailure == Local {
		late = " for " + notation.FormatDuration(r.Fallback.For)
	}
	if word := loginWord(&r.Rule); word != "" && open {
		p.warnf("W006", r.field("on_failure"), "on_failure", "this looks like a rule against guessing (%s), and it allows everything while the store is unavailable%s; write local or closed", word, late)
	}
	if open && r.usualFailure() != Open {
		p.warnf("W017", r.field("on_failure"), "on_failure", "the rule is a budget, and allows everything while the store is unavailable%s; write local or closed", late)
	}
	if own, ok := r.coversFallback(); ok {
		p.warnf("W020", r.field("on_failure"), "on_failure: limit", "%s is looser than %s of the rule, so a client gets more while the store is unavailable; lower it, or remove it to keep the limits of the rule", r.Fallback.Limit, own)
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

func (p *parser) warnKey(r *Rule, at document.Position) {
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
	if r.invented() {
		p.warnf("W010", at, "key", "a client can invent a session for each request and count as a new client each time; add user or ip to the key")
		return
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
		if j != i && covers(a, q.Burst, other, q.Burst, q.Rates[i]) && (j < i || !covers(a, q.Burst, q.Rates[i], q.Burst, other)) {
			return other, true
		}
	}
	return Rate{}, false
}

// coversFallback finds a rate of the rule by which the limit of its fallback is never reached, and which is not the same.
func (r *Rule) coversFallback() (Rate, bool) {
	q, limit := r.Quota, r.Fallback.Limit
	for _, own := range q.Rates {
		if limit == (Rate{}) || r.isCalendar(q, own) || r.isCalendar(q, limit) {
			continue // none, or of the calendar, whose periods differ in length
		}
		if covers(r.Algorithm, q.Burst, own, 0, limit) && !covers(r.Algorithm, 0, limit, q.Burst, own) {
			return own, true
		}
	}
	return Rate{}, false
}

// covers reports whether a client within one rate is always within the other. In doubt
// it returns false.
func covers(a weir.Algorithm, burst int64, one Rate, otherBurst int64, other Rate) bool {
	if leaks(a) {
		// A bucket is kept by what fits into a smaller one that refills no faster.
		smaller := cmp.Or(burst, one.N) <= cmp.Or(otherBurst, other.N)
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

func (p *parser) warnLists(exempt *list) {
	for _, l := range p.lists {
		p.warnEverybody(l)
		p.warnSuperfluous(l)
		p.warnClear(l)
		if l.name == "block" {
			p.warnExempt(l, exempt)
		}
	}
}

// warnEverybody finds lists that contain all clients.
func (p *parser) warnEverybody(l *pendingList) {
	for _, ip := range l.ips {
		if ip.value.Bits() != 0 {
			continue
		}
		family := "IPv6"
		if ip.value.Addr().Is4() {
			family = "IPv4"
		}
		if l.name == "exempt" {
			p.warnf("W001", ip.at, "exempt: ip", "%s contains every %s address, so no rule applies to these clients; list only the networks that you trust", ip.value, family)
		} else {
			p.warnf("W004", ip.at, "block: ip", "%s contains every %s address, so all of these clients are blocked; list only the networks to block", ip.value, family)
		}
	}
}

// warnSuperfluous finds entries that change nothing.
func (p *parser) warnSuperfluous(l *pendingList) {
	sorted := slices.Clone(l.ips)
	slices.SortStableFunc(sorted, func(a, b placed[netip.Prefix]) int {
		return cmp.Or(a.value.Addr().Compare(b.value.Addr()), cmp.Compare(a.value.Bits(), b.value.Bits()))
	})
	var kept placed[netip.Prefix]
	for _, ip := range sorted {
		if kept.value == ip.value {
			p.warnf("W012", ip.at, l.name+": ip", "%s is in the list twice, first in line %d; remove one", networkText(ip.value), kept.at.Line)
			continue
		}
		if kept.value.IsValid() && kept.value.Contains(ip.value.Addr()) {
			p.warnf("W012", ip.at, l.name+": ip", "%s is within %s of line %d; remove it", networkText(ip.value), networkText(kept.value), kept.at.Line)
			continue
		}
		kept = ip
	}
	p.warnTwice(l.name+": user", l.users)
	p.warnTwice(l.name+": api_key", l.keys)
}

func (p *parser) warnTwice(field string, values []placed[string]) {
	first := make(map[string]int, len(values))
	for i, v := range values {
		if before, twice := first[v.value]; twice {
			p.warnf("W012", v.at, field, "this is in the list twice, first in line %d; remove one", values[before].at.Line)
			continue
		}
		first[v.value] = i
	}
}

// warnClear finds API keys that are not hashed.
func (p *parser) warnClear(l *pendingList) {
	for _, k := range l.keys {
		if !isHash(k.value) {
			p.warnf("W013", k.at, l.name+": api_key", "the API key is in plain text, also in the history and every copy of the rules; write its hash, which begins with sha256:")
			return
		}
	}
}

// warnExempt finds whom the list cannot block, because exempt goes first.
func (p *parser) warnExempt(l *pendingList, exempt *list) {
	for _, ip := range l.ips {
		if network, found := exempt.network(ip.value.Addr()); found && network.Bits() <= ip.value.Bits() {
			p.warnf("W003", ip.at, "block: ip", "%s is exempt as part of %s, so it is not blocked; remove it from one of the lists", networkText(ip.value), networkText(network))
		}
	}
	for _, u := range l.users {
		if exempt.has(User, u.value) {
			p.warnf("W003", u.at, "block: user", "%s is exempt, so it is not blocked; remove it from one of the lists", document.Quote(u.value))
		}
	}
	for _, k := range l.keys {
		if exempt.hasKey(k.value) {
			p.warnf("W003", k.at, "block: api_key", "this key is exempt, so it is not blocked; remove it from one of the lists")
		}
	}
}

// hasKey is whether an API key, in clear or hashed, is on the list.
func (l *list) hasKey(key string) bool {
	if !isHash(key) {
		key = HashAPIKey(key)
	}
	_, found := l.apiKeys[key]
	return found
}

// warnOverrides finds overrides that are never asked for, or that tell a key.
func (p *parser) warnOverrides(r *Rule, overrides []placed[string], exempt *list) {
	told := false
	for _, o := range overrides {
		pieces := splitIdentity(o.value)
		if len(pieces) != len(r.Key) {
			continue
		}
		for i, s := range r.Key {
			if s.Kind == Levels {
				name, _, _ := strings.Cut(pieces[i], ":")
				s = levelSource(name)
			}
			prefix := Source{Kind: s.Kind, Name: s.Name}.String() + ":"
			if len(pieces[i]) <= len(prefix) {
				continue
			}
			value := pieces[i][len(prefix):]
			if s.Kind == APIKey && !isHash(value) && !told {
				p.warnf("W013", o.at, "overrides", "the API key is in plain text, also in the history and every copy of the rules; write its hash, as in api_key:sha256:…")
				told = true
			}
			if isExempt(exempt, s.Kind, value) {
				p.warnf("W002", o.at, "overrides", "this client is exempt, so no limit applies to it; remove the override or the exemption")
			}
		}
	}
}

func isExempt(exempt *list, kind SourceKind, value string) bool {
	switch kind {
	case IP:
		client, err := netip.ParsePrefix(value)
		if err != nil {
			ip, err := netip.ParseAddr(value)
			return err == nil && exempt.contains(&Request{IP: ip}, true)
		}
		network, found := exempt.network(client.Addr())
		return found && network.Bits() <= client.Bits()
	case User:
		plainText, err := unescapeValue(value)
		return err == nil && exempt.has(User, plainText)
	case APIKey:
		return exempt.hasKey(value)
	}
	return false
}
