package rule

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
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
	models  map[string]*price
	highest price
}

// price is what a model costs, in millionths of a dollar.
type price struct {
	Weights
	request Weight // each request
	output  int64  // tokens that an answer has at most; 0 if that is unknown
	steps   []step // in any order
}

// step is what all tokens of a request cost that has a long prompt.
type step struct {
	above int64
	Weights
}

// of are the weights for a prompt of so many tokens.
func (p *price) of(input int64) *Weights {
	w, above := &p.Weights, int64(-1)
	for i := range p.steps {
		if s := &p.steps[i]; input > s.above && s.above > above {
			w, above = &s.Weights, s.above
		}
	}
	return w
}

func (p *price) cost(u *Usage) int64 {
	if *u == (Usage{}) {
		return 0 // it failed
	}
	charges := p.of(u.Input).charges(u)
	return total(append(charges[:], charge{1, p.request}))
}

func (p *price) most(prompt *Prompt, output int64) int64 {
	w := p.of(prompt.Input).highest(prompt)
	return total([]charge{{clamp(prompt.Input), w.Input}, {clamp(output), w.Output}, {1, p.request}})
}

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
	p.list.Store(list)
	return nil
}

// Len returns how many models have a price.
func (p *Prices) Len() int {
	if list := p.list.Load(); list != nil {
		return len(list.models)
	}
	return 0
}

func readPrices(text []byte) (*priceList, error) {
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, fmt.Errorf("it is not a price list in JSON: %w; write models and their prices, as in {\"gpt-4o\": {\"input_cost_per_token\": 2.5e-06}}", err)
	}
	if len(entries) > maxPrices {
		return nil, fmt.Errorf("%d models exceed the maximum of %d; remove those that are not in use", len(entries), maxPrices)
	}
	list := &priceList{models: make(map[string]*price, len(entries))}
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
		one, err := readPrice(fields)
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

// raise makes the highest price at least that of a model.
func (l *priceList) raise(p *price) {
	h := &l.highest
	h.request = max(h.request, p.request)
	all := []Weights{p.Weights}
	for _, s := range p.steps {
		all = append(all, s.Weights)
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

// readPrice reads an entry; nil if it has no price for tokens. A kind without a price, or with 0, costs as much as
// the kind it belongs to; only reading from a cache can be free.
func readPrice(fields map[string]json.RawMessage) (*price, error) {
	levels := map[int64]map[string]Weight{0: {}}
	for name, raw := range fields {
		base, above := cutStep(name)
		if priceFields[base] == nil {
			continue
		}
		w, found, err := readAmount(name, raw)
		if err != nil {
			return nil, err
		}
		if found {
			if levels[above] == nil {
				levels[above] = map[string]Weight{}
			}
			levels[above][base] = w
		}
	}
	if _, found := levels[0]["input_cost_per_token"]; !found {
		return nil, nil
	}
	const unset = -1
	p := &price{Weights: Weights{Output: unset, Cached: unset}}
	apply(&p.Weights, levels[0])
	if p.Output == unset {
		p.Output = p.Input
	}
	if p.Cached == unset {
		p.Cached = p.Input
	}
	var err error
	if p.request, _, err = readAmount("input_cost_per_request", fields["input_cost_per_request"]); err != nil {
		return nil, err
	}
	var searches map[string]json.RawMessage // by the size of their results
	_ = json.Unmarshal(fields["search_context_cost_per_query"], &searches)
	for size, raw := range searches {
		w, _, err := readAmount(size, raw)
		if err != nil {
			return nil, err
		}
		p.ToolCall = max(p.ToolCall, w)
	}
	delete(levels, 0)
	for above, values := range levels {
		s := step{above, p.Weights}
		apply(&s.Weights, values)
		p.steps = append(p.steps, s)
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

func apply(w *Weights, values map[string]Weight) {
	for name, value := range values {
		*priceFields[name](w) = value
	}
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

// readAmount reads dollars. Some entries have numbers as texts.
func readAmount(field string, raw json.RawMessage) (w Weight, found bool, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return 0, false, nil
	}
	text := strings.Trim(string(raw), `"`)
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case len(text) > maxPriceDigit || math.IsNaN(f) || strings.ContainsAny(text, "xX_") || err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, false, fmt.Errorf("%s: %s is not a price; write dollars, as in 2.5e-06", field, document.Quote(document.Clip(text, maxPriceDigit)))
	case f < 0:
		return 0, false, fmt.Errorf("%s: %s is negative; write 0 or more dollars", field, text)
	case f > 1:
		return 0, false, fmt.Errorf("%s: %s dollars are more than 1, the maximum; is it a price for a million tokens?", field, text)
	case f == 0 && !strings.ContainsAny(mantissa(text), "123456789"):
		return 0, true, nil
	case f < 1e-12:
		return 1, true, nil
	}
	w, ok := exactly(text) // it is near 1, so this takes little memory
	if !ok {
		return 0, false, fmt.Errorf("%s: %s is not a price; write dollars, as in 2.5e-06", field, document.Quote(text))
	}
	return w, true, nil
}

func mantissa(text string) string {
	before, _, _ := strings.Cut(strings.ToLower(text), "e")
	return before
}

// find returns the price of a model, by its name or by one that is the same without vendor, region and date. It is
// nil if there is none.
func (l *priceList) find(model string) *price {
	for {
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
			return nil
		}
		model = rest
	}
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

// price returns that of a model, or a [RequestError].
func (p *Prices) price(model string) (*price, error) {
	var list *priceList
	if p != nil {
		list = p.list.Load()
	}
	if list == nil {
		return nil, &RequestError{Status: http.StatusServiceUnavailable, Reason: "The price of the request is not known, because the server has no price list; its operator sets one."}
	}
	if found := list.find(model); found != nil {
		return found, nil
	}
	if p.UnknownHighest {
		return &list.highest, nil
	}
	return nil, &RequestError{Status: http.StatusBadRequest, Reason: fmt.Sprintf("The model %s has no price, so its cost cannot be counted; choose another model, or ask the operator to add its price.", document.Quote(document.Clip(model, maxName)))}
}

// maxOutput is how many tokens an answer of a model has at most; 0 if that is unknown.
func (p *Prices) maxOutput(model string) int64 {
	if p == nil {
		return 0
	}
	list := p.list.Load()
	if list == nil {
		return 0
	}
	if found := list.find(model); found != nil {
		return found.output
	}
	return 0
}

// TokenCost returns what the usage of a model costs under a rule with Tokens. It is false if the model has no price.
func (c *Entry) TokenCost(model string, u Usage) (int64, bool) {
	if !c.Tokens.priced() {
		return c.Tokens.Cost(model, u), true
	}
	one, err := c.prices.price(model)
	if err != nil {
		return 0, false
	}
	return one.cost(&u), true
}
