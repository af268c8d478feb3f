package rule

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/document"
)

// priceFields are the fields of an entry that have a price for each token.
var priceFields = map[string]func(*Weights) *Weight{
	"input_cost_per_token":                      func(w *Weights) *Weight { return &w.Input },
	"output_cost_per_token":                     func(w *Weights) *Weight { return &w.Output },
	"cache_read_input_token_cost":               func(w *Weights) *Weight { return &w.Cached },
	"cache_creation_input_token_cost":           func(w *Weights) *Weight { return &w.CacheWrite },
	"cache_creation_input_token_cost_above_1hr": func(w *Weights) *Weight { return &w.CacheWrite1h },
	"input_cost_per_audio_token":                func(w *Weights) *Weight { return &w.AudioInput },
	"input_cost_per_image_token":                func(w *Weights) *Weight { return &w.ImageInput },
	"output_cost_per_reasoning_token":           func(w *Weights) *Weight { return &w.Reasoning },
	"output_cost_per_audio_token":               func(w *Weights) *Weight { return &w.AudioOutput },
	"output_cost_per_image_token":               func(w *Weights) *Weight { return &w.ImageOutput },
}

func readPrices(text []byte) (*priceList, error) {
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, fmt.Errorf("it is not a price list in JSON: %w; write models and their prices, as in {\"gpt-4o\": {\"input_cost_per_token\": 2.5e-06}}", err)
	}
	if len(entries) > maxPrices {
		return nil, fmt.Errorf("%d models exceed the maximum of %d; remove those that are not in use", len(entries), maxPrices)
	}
	list := &priceList{currency: Dollars, models: make(map[string]*price, len(entries))}
	if raw, found := entries["currency"]; found {
		if err := json.Unmarshal(raw, &list.currency); err != nil || !isCurrency(list.currency) {
			return nil, fmt.Errorf("currency: %s is not the code of a currency; write for example \"currency\": \"eur\"", document.Clip(string(raw), maxName))
		}
		delete(entries, "currency")
	}
	for name, entry := range entries {
		if name == "sample_spec" { // LiteLLM's description of the format
			continue
		}
		if len(name) > maxPriceName {
			return nil, fmt.Errorf("the name of a model has %d bytes, at most %d are allowed; remove %s", len(name), maxPriceName, document.Quote(document.Clip(name, maxName)))
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(entry, &fields); err != nil || fields == nil {
			return nil, fmt.Errorf("%s has no fields; write for example {\"input_cost_per_token\": 2.5e-06}", document.Quote(name))
		}
		one, err := list.readPrice(fields)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", document.Quote(name), err)
		}
		if one != nil {
			list.models[name] = one
			list.raise(one)
		}
	}
	if len(list.models) == 0 {
		return nil, errors.New("no model has input_cost_per_token; write for example {\"gpt-4o\": {\"input_cost_per_token\": 2.5e-06}}")
	}
	return list, nil
}

// readPrice reads an entry; nil if it has no price for tokens. A kind without a price, or with 0, costs as much as
// the kind it belongs to; only reading from a cache can be free.
func (l *priceList) readPrice(fields map[string]json.RawMessage) (*price, error) {
	levels := [serviceTiers]map[int64]map[string]Weight{{}, {}, {}, {}}
	for name, raw := range fields {
		base, tier := cutTier(name)
		base, above := cutStep(base)
		if priceFields[base] == nil {
			continue
		}
		w, found, err := l.readAmount(name, raw)
		if err != nil {
			return nil, err
		}
		if found {
			if levels[tier][above] == nil {
				levels[tier][above] = map[string]Weight{}
			}
			levels[tier][above][base] = w
		}
	}
	if _, found := levels[StandardTier][0]["input_cost_per_token"]; !found {
		return nil, nil
	}
	p, usual := new(price), Weights{Output: unset, Cached: unset}
	var err error
	if p.request, _, err = l.readAmount("input_cost_per_request", fields["input_cost_per_request"]); err != nil {
		return nil, err
	}
	var searches map[string]json.RawMessage // by the size of their results
	_ = json.Unmarshal(fields["search_context_cost_per_query"], &searches)
	for size, raw := range searches {
		w, _, err := l.readAmount(size, raw)
		if err != nil {
			return nil, err
		}
		usual.ToolCall = max(usual.ToolCall, w)
	}
	standard := levels[StandardTier]
	p.rates = ratesOf(usual, standard)
	for tier := FlexTier; tier < serviceTiers; tier++ {
		if own := levels[tier]; len(own) > 0 {
			r := ratesOf(usual, standard, own)
			p.tiers[tier] = &r
		}
	}
	p.output = readMaxOutput(fields["max_output_tokens"])
	return p, nil
}

// readMaxOutput reads how long an answer can be. What is no such number is unknown, so that requests
// reserve what they ask for.
func readMaxOutput(raw json.RawMessage) int64 {
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || !(n >= 1 && n <= maxTokens) {
		return 0
	}
	return int64(n)
}

// unset is the price of answers or of what is cached if it is not given. Neither can be Free.
const unset Weight = -1

// ratesOf are the rates of all levels. What a later one has counts; what none has costs as much as what it belongs to, there.
func ratesOf(usual Weights, all ...map[int64]map[string]Weight) (r rates) {
	for _, levels := range all {
		apply(&usual, levels[0])
	}
	r.Weights = usual.filled()
	for _, levels := range all {
		for above := range levels {
			if above == 0 || slices.ContainsFunc(r.steps, func(s step) bool { return s.above == above }) {
				continue
			}
			s := step{above, usual}
			for _, levels := range all {
				apply(&s.Weights, levels[above])
			}
			s.Weights = s.filled()
			r.steps = append(r.steps, s)
		}
	}
	return r
}

func apply(w *Weights, values map[string]Weight) {
	for name, value := range values {
		*priceFields[name](w) = value
	}
}

// filled are the weights with those that are unset as high as those of the prompt.
func (w Weights) filled() Weights {
	if w.Output == unset {
		w.Output = w.Input
	}
	if w.Cached == unset {
		w.Cached = w.Input
	}
	return w
}

// cutTier splits the name of a field that is for one tier of service, as in input_cost_per_token_flex.
func cutTier(name string) (base string, tier ServiceTier) {
	for tier, suffix := range [...]string{FlexTier: "_flex", PriorityTier: "_priority", BatchTier: "_batches"} {
		if base, found := strings.CutSuffix(name, suffix); found && suffix != "" {
			return base, ServiceTier(tier)
		}
	}
	return name, StandardTier
}

// cutStep splits the name of a field that is for long prompts, as in input_cost_per_token_above_200k_tokens.
func cutStep(name string) (base string, above int64) {
	base, rest, found := cutLast(name, "_above_")
	text, isStep := strings.CutSuffix(rest, "k_tokens")
	n, err := strconv.ParseInt(text, 10, 32)
	if !found || !isStep || err != nil || n < 1 {
		return name, 0
	}
	return base, n * 1000
}

func cutLast(text, by string) (before, after string, found bool) {
	if i := strings.LastIndex(text, by); i >= 0 {
		return text[:i], text[i+len(by):], true
	}
	return text, "", false
}

// mostAmount is the highest price in a currency other than the dollar. Some are worth little.
const mostAmount = 1000

// readAmount reads an amount of the currency. Some entries have numbers as texts.
func (l *priceList) readAmount(field string, raw json.RawMessage) (w Weight, found bool, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return 0, false, nil
	}
	most := 1.0
	if l.currency != Dollars {
		most = mostAmount
	}
	text := strings.Trim(string(raw), `"`)
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case len(text) > maxPriceDigit || math.IsNaN(f) || strings.ContainsAny(text, "xX_") || err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, false, fmt.Errorf("%s: %s is not a price; write an amount, as in 2.5e-06", field, document.Quote(document.Clip(text, maxPriceDigit)))
	case f < 0:
		return 0, false, fmt.Errorf("%s: %s is negative; write 0 or more", field, text)
	case f > most:
		return 0, false, fmt.Errorf("%s: %s %s are more than %v, the maximum; is it a price for a million tokens?", field, text, currencyName(l.currency), most)
	case f == 0 && !strings.ContainsAny(mantissa(text), "123456789"):
		return 0, true, nil
	case f < 1e-12:
		return 1, true, nil
	}
	w, ok := exactly(text) // it is near 1, so this takes little memory
	if !ok {
		return 0, false, fmt.Errorf("%s: %s is not a price; write an amount, as in 2.5e-06", field, document.Quote(text))
	}
	return w, true, nil
}

func mantissa(text string) string {
	before, _, _ := strings.Cut(strings.ToLower(text), "e")
	return before
}
