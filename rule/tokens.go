package rule

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
)

// Tokens makes a rule count the tokens of language models: a request reserves what it may
// use, and is settled with what it did use. Such a rule applies only to requests that use
// tokens.
type Tokens struct {
	API     ModelAPI           // default AutoAPI
	Weights Weights            // of models without their own; the zero value counts every token once
	Models  map[string]Weights // by name, or by its beginning, as in "gpt-4o*"

	// DefaultOutput is the number of tokens to reserve for an answer if the client sets no
	// maximum. Default 1000.
	DefaultOutput int64

	// OnOverrun selects what happens to a stream that uses more than was reserved. Default
	// Finish.
	OnOverrun Overrun
}

// ModelAPI is the API of a language model.
type ModelAPI uint8

const (
	AutoAPI   ModelAPI = iota // recognized by path and body
	OpenAI                    // chat completions, responses, embeddings
	Anthropic                 // messages
	Gemini                    // generateContent, streamGenerateContent, embedContent
)

// Overrun selects what happens to a stream that uses more than was reserved.
type Overrun uint8

const (
	Finish Overrun = iota // it goes on, and the rest is charged even beyond the limit
	Cut                   // it ends as if the model had reached the client's maximum
)

// Weight is a number of units for each token, in millionths of a unit.
type Weight int64

// MaxWeight is the maximum of a Weight: a million units.
const MaxWeight Weight = 1e12

const oneUnit Weight = 1e6

// Weights are the units that tokens cost. The sum is rounded up once for each request.
type Weights struct {
	Input  Weight // tokens of the prompt that are not cached
	Output Weight // tokens of the answer, including its reasoning
	Cached Weight // tokens of the prompt that the vendor reads from its cache
}

const (
	defaultOutput = 1000
	maxTokens     = 1 << 40 // more than any request has
	maxModels     = 1000
)

// Prompt describes a request to a language model, before there is an answer.
type Prompt struct {
	Model     string // as the client names it
	Input     int64  // estimated tokens
	MaxOutput int64  // the client's maximum for all answers
	Answers   int64  // the number of answers without a maximum
}

// Usage is the number of tokens that a request used.
type Usage struct {
	Input  int64 // with those that were cached
	Cached int64
	Output int64 // with those of reasoning
}

// weights returns what the tokens of a model cost: by its whole name, by the longest
// beginning of it, or as every other model.
func (t *Tokens) weights(model string) Weights {
	if w, found := t.Models[model]; found {
		return w
	}
	w, length := t.Weights, -1
	for name, weights := range t.Models {
		if begin, any := strings.CutSuffix(name, "*"); any && len(begin) > length && strings.HasPrefix(model, begin) {
			w, length = weights, len(begin)
		}
	}
	if w == (Weights{}) {
		return Weights{oneUnit, oneUnit, oneUnit}
	}
	return w
}

// Weighted reports whether a number of tokens does not tell what they cost. It is false for nil.
func (t *Tokens) Weighted() bool {
	return t != nil && (t.Weights != Weights{} || len(t.Models) > 0)
}

// estimate is the most that a request is expected to cost.
func (t *Tokens) estimate(p *Prompt) int64 {
	output := t.DefaultOutput
	if output == 0 {
		output = defaultOutput
	}
	output = min(output, maxTokens/max(1, p.Answers)) * max(0, p.Answers)
	return t.weights(p.Model).cost(Usage{Input: p.Input, Output: min(output+clamp(p.MaxOutput), maxTokens)})
}

// Cost returns what the usage of a model costs.
func (t *Tokens) Cost(model string, u Usage) int64 { return t.weights(model).cost(u) }

func (w Weights) cost(u Usage) int64 {
	input, cached := clamp(u.Input), clamp(min(u.Cached, u.Input))
	var high, low uint64
	for _, part := range [...]struct {
		tokens int64
		weight Weight
	}{{input - cached, w.Input}, {cached, w.Cached}, {clamp(u.Output), w.Output}} {
		h, l := bits.Mul64(uint64(part.tokens), uint64(max(0, min(part.weight, MaxWeight))))
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		high += h + carry
	}
	low, carry := bits.Add64(low, uint64(oneUnit)-1, 0)
	if high += carry; high >= uint64(oneUnit) {
		return weir.MaxUnits
	}
	sum, _ := bits.Div64(high, low, uint64(oneUnit))
	return int64(min(sum, weir.MaxUnits))
}

func clamp(tokens int64) int64 { return max(0, min(tokens, maxTokens)) }

func (t *Tokens) validate() error {
	if t == nil {
		return nil
	}
	if int(t.API) >= len(modelAPIs.names) || int(t.OnOverrun) >= len(overruns.names) {
		return errors.New("tokens: api or on_overrun is unknown")
	}
	if t.DefaultOutput < 0 || t.DefaultOutput > maxTokens {
		return fmt.Errorf("tokens: default_output: %d is out of range; write 1 to %d", t.DefaultOutput, int64(maxTokens))
	}
	if len(t.Models) > maxModels {
		return fmt.Errorf("tokens: models: %d models exceed the maximum of %d; use beginnings of names, such as gpt-4o*", len(t.Models), maxModels)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Models)) {
		if err := t.Models[name].validate(); err != nil || t.Models[name] == (Weights{}) {
			return fmt.Errorf("tokens: models: %s: a model needs a weight above 0, and none above %d", name, MaxWeight/oneUnit)
		}
	}
	return t.Weights.validate()
}

func (w Weights) validate() error {
	if min(w.Input, w.Output, w.Cached) < 0 || max(w.Input, w.Output, w.Cached) > MaxWeight {
		return fmt.Errorf("tokens: weights: out of range; write 0 to %d", MaxWeight/oneUnit)
	}
	return nil
}

var (
	modelAPIs = vocabulary[ModelAPI]{"ModelAPI", []string{AutoAPI: "auto", OpenAI: "openai", Anthropic: "anthropic", Gemini: "gemini"},
		map[string]string{"azure": "openai", "claude": "anthropic", "google": "gemini", "vertex": "gemini"}}
	overruns = vocabulary[Overrun]{"Overrun", []string{Finish: "finish", Cut: "cut"},
		map[string]string{"continue": "finish", "allow": "finish", "stop": "cut", "truncate": "cut"}}
)

// ParseModelAPI parses "auto", "openai", "anthropic" or "gemini".
func ParseModelAPI(name string) (ModelAPI, error) { return modelAPIs.parse(name) }

// String returns the name, which ParseModelAPI accepts.
func (a ModelAPI) String() string { return modelAPIs.name(a) }

// ParseOverrun parses "finish" or "cut".
func ParseOverrun(name string) (Overrun, error) { return overruns.parse(name) }

// String returns the name, which ParseOverrun accepts.
func (o Overrun) String() string { return overruns.name(o) }

// ParseWeight parses a number of units with up to six digits after the point, such as "0.1".
func ParseWeight(text string) (Weight, error) {
	whole, part, _ := strings.Cut(text, ".")
	if text != "" && len(whole) <= 7 && len(part) <= 6 && strings.Trim(whole+part, "0123456789") == "" && whole+part != "" && !strings.HasSuffix(text, ".") {
		n, err := strconv.ParseInt("0"+whole+part+strings.Repeat("0", 6-len(part)), 10, 64)
		if err == nil && Weight(n) <= MaxWeight {
			return Weight(n), nil
		}
	}
	return 0, fmt.Errorf("%s is not a weight; write a number from 0 to %d with at most six digits after the point, such as 0.1", document.Quote(text), MaxWeight/oneUnit)
}

// String returns the notation that ParseWeight accepts.
func (w Weight) String() string {
	text := fmt.Sprintf("%d.%06d", w/oneUnit, w%oneUnit)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

var (
	weightFields = newTable(
		weightField("input", func(*Weights) Weight { return oneUnit }, func(w *Weights) *Weight { return &w.Input }),
		weightField("output", func(*Weights) Weight { return oneUnit }, func(w *Weights) *Weight { return &w.Output }),
		weightField("cached", func(w *Weights) Weight { return w.Input }, func(w *Weights) *Weight { return &w.Cached }),
	)

	tokenFields = newTable(
		wordField("api", ParseModelAPI, func(t *Tokens) *ModelAPI { return &t.API }),
		field[Tokens]{"weights", func(p *parser, e *document.Element, path string, t *Tokens) {
			if w := p.weights(e, path); w != (Weights{oneUnit, oneUnit, oneUnit}) {
				t.Weights = w
			}
		}, func(t *Tokens) *document.Element {
			if t.Weights == (Weights{}) {
				return nil
			}
			return weightFields.element(&t.Weights)
		}},
		field[Tokens]{"models", (*parser).models, modelsElement},
		integerField("default_output", "E030", 1, maxTokens, defaultOutput, func(t *Tokens) *int64 { return &t.DefaultOutput }),
		wordField("on_overrun", ParseOverrun, func(t *Tokens) *Overrun { return &t.OnOverrun }),
	)
)

// tokens reads how a rule counts tokens.
func (p *parser) tokens(e *document.Element, field string, r *Rule) {
	t := new(Tokens)
	if tokenFields.read(p, e, field, t) != nil {
		r.Tokens = t
	}
}

func tokensElement(r *Rule) *document.Element {
	if r.Tokens == nil {
		return nil
	}
	return tokenFields.element(r.Tokens)
}

// weights reads what tokens cost. What is not given costs as much as usual; a cached token as
// much as another.
func (p *parser) weights(e *document.Element, field string) Weights {
	const unset = -1
	w := Weights{oneUnit, oneUnit, unset}
	if weightFields.read(p, e, field, &w) == nil {
		return Weights{}
	}
	if w.Cached == unset {
		w.Cached = w.Input
	}
	if w == (Weights{}) {
		p.errorf("E030", e.Place, field, "all weights are 0, so no request would cost anything; write one above 0")
	}
	return w
}

func weightField(name string, usual func(*Weights) Weight, of func(*Weights) *Weight) field[Weights] {
	return field[Weights]{name, func(p *parser, e *document.Element, path string, w *Weights) {
		if text, ok := p.text(e, path, maxText); ok {
			if n, err := ParseWeight(text); err != nil {
				p.errorf("E030", e.Place, path, "%v", err)
			} else {
				*of(w) = n
			}
		}
	}, func(w *Weights) *document.Element {
		return unless(usual(w), *of(w), func(n Weight) *document.Element { return document.NewNumber(n.String()) })
	}}
}

// models reads weights by model.
func (p *parser) models(e *document.Element, field string, t *Tokens) {
	if e.Kind != document.Mapping {
		p.errorf("E006", e.Place, field, "this is %s; write models and their weights, as in {gpt-4o: {input: 2.5, output: 10}}", e.Describe())
	}
	if len(e.Members) == 0 {
		return
	}
	if len(e.Members) > maxModels {
		p.errorf("E002", e.Place, field, "%d models exceed the maximum of %d; use beginnings of names, such as gpt-4o*", len(e.Members), maxModels)
		return
	}
	t.Models = make(map[string]Weights, len(e.Members))
	for _, m := range e.Members {
		name, ok := p.text(m.Name, field+": the name", maxName)
		if !ok {
			continue
		}
		if strings.Contains(strings.TrimSuffix(name, "*"), "*") {
			p.errorf("E030", m.Name.Place, field, "%s has a star before its end; write the beginning of a name and one star, such as gpt-4o*", document.Quote(name))
		}
		w := p.weights(m.Value, field+": "+document.Clip(name, maxName))
		if w == (Weights{}) {
			w = Weights{oneUnit, oneUnit, oneUnit} // it is wrong anyway
		}
		t.Models[name] = w
	}
}

func modelsElement(t *Tokens) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	for _, name := range slices.Sorted(maps.Keys(t.Models)) {
		w := t.Models[name]
		e.Add(name, weightFields.element(&w))
	}
	return e.OrNil()
}
