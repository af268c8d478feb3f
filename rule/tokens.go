package rule

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/internal/document"
)

// Tokens makes a rule count the tokens of language models: a request reserves what it may
// use, and is settled with what it did use. Such a rule applies only to requests that use
// tokens.
type Tokens struct {
	API     ModelAPI           // default AutoAPI
	Weights Weights            // of models without their own; the zero value counts every token once
	Price   string             // the currency of Options.Prices, such as Dollars, whose millionths the rule counts; excludes Weights and Models. Default none
	Models  map[string]Weights // by name, or by its beginning, as in "gpt-4o*"

	// DefaultOutput is the number of tokens to reserve for an answer if the client sets no
	// maximum. Default that of the model, if Options.Prices has it, or else 1000.
	DefaultOutput int64

	Reserve Reserve // default all that a request may use

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
	Bedrock                   // Converse, ConverseStream
)

// Overrun selects what happens to a stream that uses more than was reserved.
type Overrun uint8

const (
	Finish Overrun = iota // it goes on, and the rest is charged even beyond the limit
	Cut                   // it ends as if the model had reached the client's maximum
)

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
	Bounded   int64  // the number of answers that MaxOutput is for; 0 counts as 1
	Answers   int64  // the number of answers without a maximum
	Caches    bool   // it asks the vendor to write parts of it to a cache, at the vendor's price

	Tier ServiceTier // that it asks for

	// Unclear is a sentence for the client if the model may be another one than Model, so that its price is not
	// known; "" if it is clear. Rules with a price, or with Models, then deny the request.
	Unclear string
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
		return everyToken
	}
	return w
}

// Weighted reports whether a number of tokens does not tell what they cost. It is false for nil.
func (t *Tokens) Weighted() bool {
	return t != nil && (t.Weights != Weights{} || len(t.Models) > 0 || t.priced())
}

// estimate is what a request costs with so many tokens of answers.
func (t *Tokens) estimate(p *Prompt, output int64) int64 {
	w := t.weights(p.Model).highest(p)
	return w.cost(&Usage{Input: p.Input, Output: output})
}

// Cost returns what the usage of a model costs.
func (t *Tokens) Cost(model string, u Usage) int64 {
	w := t.weights(model)
	return w.cost(&u)
}

func clamp(tokens int64) int64 { return max(0, min(tokens, maxTokens)) }

func (t *Tokens) validate() error {
	if t == nil {
		return nil
	}
	if int(t.API) >= len(modelAPIs.names) || int(t.OnOverrun) >= len(overruns.names) || t.priced() && !isCurrency(t.Price) {
		return errors.New("tokens: api, on_overrun or price is unknown")
	}
	if t.priced() && (t.Weights != Weights{} || len(t.Models) > 0) {
		return errors.New(pricedTwice)
	}
	if t.DefaultOutput < 0 || t.DefaultOutput > maxTokens {
		return fmt.Errorf("tokens: default_output: %d is out of range; write 1 to %d", t.DefaultOutput, int64(maxTokens))
	}
	if len(t.Models) > maxModels {
		return fmt.Errorf("tokens: models: %d models exceed the maximum of %d; use beginnings of names, such as gpt-4o*", len(t.Models), maxModels)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Models)) {
		if err := t.Models[name].validate(); err != nil || !t.Models[name].some() {
			return fmt.Errorf("tokens: models: %s: a model needs a weight above 0, and none above %d", name, MaxWeight/oneUnit)
		}
	}
	return errors.Join(t.Weights.validate(), t.Reserve.validate())
}

var (
	modelAPIs = vocabulary[ModelAPI]{"ModelAPI", []string{AutoAPI: "auto", OpenAI: "openai", Anthropic: "anthropic", Gemini: "gemini", Bedrock: "bedrock"},
		map[string]string{"azure": "openai", "claude": "anthropic", "google": "gemini", "vertex": "gemini", "aws": "bedrock"}}
	overruns = vocabulary[Overrun]{"Overrun", []string{Finish: "finish", Cut: "cut"},
		map[string]string{"continue": "finish", "allow": "finish", "stop": "cut", "truncate": "cut"}}
)

// ParseModelAPI parses "auto", "openai", "anthropic", "gemini" or "bedrock".
func ParseModelAPI(name string) (ModelAPI, error) { return modelAPIs.parse(name) }

// String returns the name, which ParseModelAPI accepts.
func (a ModelAPI) String() string { return modelAPIs.name(a) }

// ParseOverrun parses "finish" or "cut".
func ParseOverrun(name string) (Overrun, error) { return overruns.parse(name) }

// String returns the name, which ParseOverrun accepts.
func (o Overrun) String() string { return overruns.name(o) }

const pricedTwice = "tokens: price is what tokens cost, and so are weights and models; remove price, or remove the others"

var tokenFields = newTable(
	wordField("api", ParseModelAPI, func(t *Tokens) *ModelAPI { return &t.API }),
	field[Tokens]{"price", (*parser).price, func(t *Tokens) *document.Element { return unless("", t.Price, document.NewText) }},
	field[Tokens]{"weights", func(p *parser, e *document.Element, path string, t *Tokens) {
		if w := p.weights(e, path); w != everyToken {
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
	field[Tokens]{"reserve", func(p *parser, e *document.Element, path string, t *Tokens) {
		reserveFields.readFields(p, e, path, t)
	}, func(t *Tokens) *document.Element { return reserveFields.element(t).OrNil() }},
	wordField("on_overrun", ParseOverrun, func(t *Tokens) *Overrun { return &t.OnOverrun }),
)

// tokens reads how a rule counts tokens.
func (p *parser) tokens(e *document.Element, field string, r *Rule) {
	t := new(Tokens)
	if tokenFields.readFields(p, e, field, t) != nil {
		if t.priced() && (e.Get("weights") != nil || e.Get("models") != nil) {
			p.errorf("E030", e.Position, field, "%s", strings.TrimPrefix(pricedTwice, "tokens: "))
		}
		r.Tokens = t
	}
}

func tokensElement(r *Rule) *document.Element {
	if r.Tokens == nil {
		return nil
	}
	return tokenFields.element(r.Tokens)
}

// models reads weights by model.
func (p *parser) models(e *document.Element, field string, t *Tokens) {
	if e.Kind != document.Mapping {
		p.errorf("E006", e.Position, field, "this is %s; write models and their weights, as in {gpt-4o: {input: 2.5, output: 10}}", e.Describe())
	}
	if len(e.Members) == 0 {
		return
	}
	if len(e.Members) > maxModels {
		p.errorf("E002", e.Position, field, "%d models exceed the maximum of %d; use beginnings of names, such as gpt-4o*", len(e.Members), maxModels)
		return
	}
	t.Models = make(map[string]Weights, len(e.Members))
	for _, m := range e.Members {
		name, ok := p.text(m.Name, field+": the name", maxName)
		if !ok {
			continue
		}
		if strings.Contains(strings.TrimSuffix(name, "*"), "*") {
			p.errorf("E030", m.Name.Position, field, "%s has a star before its end; write the beginning of a name and one star, such as gpt-4o*", document.Quote(name))
		}
		w := p.weights(m.Value, field+": "+document.Clip(name, maxName))
		if w == (Weights{}) {
			w = everyToken // it is wrong anyway
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
