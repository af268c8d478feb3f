package rule

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/weirhq/weir"
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
	if int(t.API) >= len(modelAPINames) || int(t.OnOverrun) >= len(overrunNames) {
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
