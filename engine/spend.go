package engine

import (
	"fmt"
	"hash/crc32"
	"net/url"
	"slices"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// SpendObserver is an [Observer] that is also called with what rules that count money have charged for good: what a
// request cost that was charged without a hold, and what a hold was settled with. What a hold that expires
// leaves charged is not told, as it is not known whether it was used.
type SpendObserver interface {
	Observer

	// ObserveSpend must be fast. It may keep the texts.
	ObserveSpend(Spend)
}

// Spend is what one request has cost one client of a rule that counts money.
type Spend struct {
	Rule  string
	Level string // of the client; "" if the rule has no levels
	Key   string // of the client
	Model string // that the request names, or its attribute model; "" if it is not known

	Currency string     // such as "usd"
	Units    int64      // millionths of it; below 0 if a request that was charged is given back
	More     bool       // the request is told of apart, with other units
	Tokens   rule.Usage // zero if they are not known
}

// maxSpentModel is how much of the name of a model a hold keeps, in bytes of its tag.
const maxSpentModel = 64

// modelOf is the model of a request.
func modelOf(req *rule.Request) string {
	if req.Prompt != nil && req.Prompt.Model != "" {
		return req.Prompt.Model
	}
	return req.Attributes["model"]
}

// spends reports whether observers are to be told what a result has cost.
func (e *Engine) spends(r *Result) bool {
	return len(e.spendObservers) > 0 && r.Rule.Money() != "" && !r.isPlace() && !r.isPenalty
}

// tagOf is the tag of a result, with whose money it spends, if observers are to know that: whoever settles the hold tells them.
func (e *Engine) tagOf(v *Verdict, r *Result, more int) tag {
	t := r.tag(more)
	if e.spends(r) {
		t.spender = spenderOf(r.Key, v.model, weir.MaxTagLen-len(t.String()))
	}
	return t
}

// spenderOf writes a client and a model as a tag has them, in so many bytes. What is too long is cut, and told apart by a hash.
func spenderOf(key, model string, room int) string {
	fit := func(text string, room int) string {
		escaped := url.QueryEscape(text)
		if len(escaped) <= room {
			return escaped
		}
		return url.QueryEscape(text[:min(len(text), max(0, room-9)/3)]) + fmt.Sprintf("~%08x", crc32.ChecksumIEEE([]byte(text)))
	}
	model = fit(model, min(maxSpentModel, room/3))
	return fit(key, room-len(model)-1) + "," + model
}

// spent is what was charged to one client of a rule.
type spent struct {
	rule, spender, currency string
	units                   int64
}

// addSpent adds what a part of a hold has used, unless another limit of its rule has told it.
func (s *Settled) addSpent(t tag, units int64) {
	if t.spender != "" && !slices.ContainsFunc(s.spent, func(p spent) bool { return p.rule == t.rule && p.spender == t.spender }) {
		s.spent = append(s.spent, spent{t.rule, t.spender, t.unit, units}) // the unit of a rule that counts money is its currency
	}
}

// observeSpent tells what a hold was settled with.
func (e *Engine) observeSpent(all []spent, by *settlement) {
	for _, p := range all {
		key, model, _ := strings.Cut(p.spender, ",")
		e.tellSpend(Spend{Rule: p.rule, Key: unescaped(key), Model: unescaped(model), Currency: p.currency, Units: p.units, More: by.step, Tokens: by.tokens})
	}
}

func unescaped(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}

// observeCharged tells what was charged without a hold, or given back with the sign -1.
func (e *Engine) observeCharged(v *Verdict, sign int64) {
	if len(e.spendObservers) == 0 {
		return
	}
	for i := range v.Results {
		r := &v.Results[i]
		again := func(other Result) bool { return other.Rule == r.Rule && other.Key == r.Key && other.Receipt != 0 }
		if r.Receipt != 0 && !r.held && e.spends(r) && !slices.ContainsFunc(v.Results[:i], again) {
			e.tellSpend(Spend{Rule: r.Rule.ID, Key: strings.Clone(r.Key), Model: strings.Clone(v.model), Currency: r.Rule.Money(), Units: sign * r.Cost})
		}
	}
}

func (e *Engine) tellSpend(s Spend) {
	if s.Units == 0 && s.Tokens == (rule.Usage{}) {
		return
	}
	if c := e.installed.Load().table.Find(s.Rule); c != nil {
		s.Level = c.Level(s.Key)
	}
	for _, o := range e.spendObservers {
		o.ObserveSpend(s)
	}
}
