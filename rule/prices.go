package rule

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/weirhq/weir/internal/document"
)

const (
	maxPriceFile  = 16 << 20 // bytes; LiteLLM's has two millions
	maxPrices     = 20_000
	maxPriceName  = 256
	maxPriceDigit = 64 // of a number
)

// Prices are what models cost, in the format that LiteLLM publishes. Rules with a price ask them for every request,
// so those that are read later are in force at once. The zero value knows no model.
type Prices struct {
	// UnknownHighest gives a model that is not on the list the highest price of each kind.
	// Without it, requests for such a model are denied.
	UnknownHighest bool

	list atomic.Pointer[priceList]
}

type priceList struct {
	currency string // "" if there is no list
	models   map[string]*price
	highest  price
	before   map[string]*price // of the list that this one replaced, for requests that were under way
}

// price is what a model costs, in millionths of the currency.
type price struct {
	rates
	request Weight               // each request
	output  int64                // tokens that an answer has at most; 0 if that is unknown
	tiers   [serviceTiers]*rates // nil if a tier costs as much as the standard one
}

// rates are what tokens cost in one tier of service.
type rates struct {
	Weights
	steps []step // in any order
}

// step is what all tokens of a request cost that has a long prompt.
type step struct {
	above int64
	Weights
}

// of are the weights for a prompt of so many tokens.
func (p *price) of(tier ServiceTier, input int64) *Weights {
	r := &p.rates
	if tier < serviceTiers && p.tiers[tier] != nil {
		r = p.tiers[tier]
	}
	w, above := &r.Weights, int64(-1)
	for i := range r.steps {
		if s := &r.steps[i]; input > s.above && s.above > above {
			w, above = &s.Weights, s.above
		}
	}
	return w
}

func (p *price) cost(u *Usage) int64 {
	if *u == (Usage{}) {
		return 0 // it failed
	}
	charges := p.of(u.Tier, u.Input).charges(u)
	return total(append(charges[:], charge{1, p.request}))
}

// most is the most that a request costs, in the tier that it asks for or in the standard one, in which vendors may serve it.
func (p *price) most(prompt *Prompt, output int64) (most int64) {
	for _, tier := range [...]ServiceTier{StandardTier, prompt.Tier} {
		w := p.of(tier, prompt.Input).highest(prompt)
		most = max(most, total([]charge{{clamp(prompt.Input), w.Input}, {clamp(output), w.Output}, {1, p.request}}))
	}
	return most
}

// Read reads a list and brings it into force. After an error, the list before stays. The name is
// that of the file, for errors.
func (p *Prices) Read(name string, from io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(from, maxPriceFile+1))
	switch {
	case err != nil:
		return err
	case len(text) > maxPriceFile:
		return fmt.Errorf("rule: %s has more than %d bytes; remove models that are not in use", name, maxPriceFile)
	}
	list, err := readPrices(text)
	if err != nil {
		return fmt.Errorf("rule: %s: %w", name, err)
	}
	old := p.current()
	if old.currency != "" && old.currency != list.currency {
		return fmt.Errorf("rule: %s: it is in %s, and the list before in %s, in which budgets are counted; restart weir to change the currency, or write \"currency\": \"%s\"",
			name, currencyName(list.currency), currencyName(old.currency), old.currency)
	}
	list.before = old.models
	p.list.Store(list)
	return nil
}

var noList priceList

// current is the list in force. It has no currency if there is none.
func (p *Prices) current() *priceList {
	if p != nil {
		if list := p.list.Load(); list != nil {
			return list
		}
	}
	return &noList
}

// Problems are the rules of a set that count tokens in another currency than that of the list.
func (p *Prices) Problems(set *Set) (all Problems) {
	currency := p.current().currency
	for i := range set.Rules {
		if r := &set.Rules[i]; r.Tokens.priced() && r.Tokens.Price != currency && currency != "" {
			all = append(all, Problem{Severity: Error, Code: "E042", Rule: r.ID, Field: "tokens.price", Message: fmt.Sprintf(
				"%s: tokens: price: the rule counts %s, and the price list is in %s; write %s, or start weir with a list in %[2]s, which says \"currency\": \"%[5]s\"",
				r.ID, currencyName(r.Tokens.Price), currencyName(currency), currency, r.Tokens.Price)})
		}
	}
	return all
}

// Len returns how many models have a price.
func (p *Prices) Len() int { return len(p.current().models) }

// raise makes the highest price at least that of a model.
func (l *priceList) raise(p *price) {
	h := &l.highest
	h.request = max(h.request, p.request)
	var all []Weights
	for _, r := range append(p.tiers[:], &p.rates) {
		if r != nil {
			all = append(all, r.Weights)
			for _, s := range r.steps {
				all = append(all, s.Weights)
			}
		}
	}
	for _, w := range all {
		write := own(w.CacheWrite, w.Input)
		h.Input, h.Output, h.Cached = max(h.Input, w.Input), max(h.Output, w.Output), max(h.Cached, w.Cached)
		h.CacheWrite = max(h.CacheWrite, write)
		h.CacheWrite1h = max(h.CacheWrite1h, own(w.CacheWrite1h, write))
		h.AudioInput = max(h.AudioInput, own(w.AudioInput, w.Input))
		h.ImageInput = max(h.ImageInput, own(w.ImageInput, w.Input))
		h.Reasoning = max(h.Reasoning, own(w.Reasoning, w.Output))
		h.AudioOutput = max(h.AudioOutput, own(w.AudioOutput, w.Output))
		h.ImageOutput = max(h.ImageOutput, own(w.ImageOutput, w.Output))
		h.ToolCall = max(h.ToolCall, w.ToolCall)
	}
}

// priceOf returns the price of a model, by its name or by one that is the same without vendor, region and date. It is
// nil if there is none.
func (l *priceList) priceOf(model string) *price {
	for len(l.models) > 0 {
		if p := l.undated(model); p != nil {
			return p
		}
		if region, rest, found := strings.Cut(model, "."); found && regions[region] {
			if p := l.undated(rest); p != nil {
				return p
			}
		}
		_, rest, found := strings.Cut(model, "/")
		if !found {
			break
		}
		model = rest
	}
	return nil
}

// regions begin the names of models on Bedrock.
var regions = map[string]bool{"us": true, "eu": true, "apac": true, "global": true, "jp": true, "au": true, "us-gov": true}

// versions end names of models; what is before them is a name, too.
var versions = regexp.MustCompile(`(-v\d+(:\d+)?|[-@](latest|default|\d{4}-\d\d-\d\d|\d{8}|\d{4}|\d{3}))$`)

// undated finds a name as it is, and then without its versions and dates. Models that were trained further have a price
// of their own: ft:gpt-4o-2024-08-06:team::id is ft:gpt-4o-2024-08-06.
func (l *priceList) undated(name string) *price {
	if parts := strings.SplitN(name, ":", 3); parts[0] == "ft" && len(parts) > 2 {
		name = parts[0] + ":" + parts[1]
	}
	for {
		if p := l.models[name]; p != nil {
			return p
		}
		at := versions.FindStringIndex(name)
		if at == nil {
			return nil
		}
		name = name[:at[0]]
	}
}

// price returns that of a model in a currency, or a [RequestError].
func (p *Prices) price(model, currency string) (*price, error) {
	list := p.current()
	switch list.currency {
	case currency:
	case "":
		return nil, &RequestError{Status: http.StatusServiceUnavailable, Reason: "The price of the request is not known, because the server has no price list; its operator sets one."}
	default:
		return nil, &RequestError{Status: http.StatusServiceUnavailable, Reason: fmt.Sprintf("The price of the request is not known, because the server counts %s and has a price list in %s; its operator sets one of them.", currencyName(currency), currencyName(list.currency))}
	}
	if found := list.priceOf(model); found != nil {
		return found, nil
	}
	if p.UnknownHighest {
		return &list.highest, nil
	}
	if model == "" {
		return nil, &RequestError{Status: http.StatusBadRequest, Reason: "The request names no model, so its cost cannot be counted; name one."}
	}
	return nil, &RequestError{Status: http.StatusBadRequest, Reason: fmt.Sprintf("The model %s has no price, so its cost cannot be counted; choose another model, or ask the operator to add its price.", document.Quote(document.Clip(model, maxName)))}
}

// former is the price that a model had on the list before, or nil.
func (p *Prices) former(model string) *price {
	return (&priceList{models: p.current().before}).priceOf(model)
}

// maxOutput is how many tokens an answer of a model has at most; 0 if that is unknown.
func (p *Prices) maxOutput(model string) int64 {
	if found := p.current().priceOf(model); found != nil {
		return found.output
	}
	return 0
}

// TokenCost returns what the usage of a model costs under a rule with Tokens. A model that the price list no longer has costs what it did
// before. It is false if the model has no price.
func (c *Entry) TokenCost(model string, u Usage) (int64, bool) {
	if !c.Tokens.priced() {
		return c.Tokens.Cost(model, u), true
	}
	one, err := c.prices.price(model, c.money)
	if err != nil {
		if one = c.prices.former(model); one == nil {
			return 0, false
		}
	}
	return one.cost(&u), true
}
