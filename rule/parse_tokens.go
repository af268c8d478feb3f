package rule

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/internal/document"
)

var (
	modelAPINames = []string{AutoAPI: "auto", OpenAI: "openai", Anthropic: "anthropic", Gemini: "gemini"}
	overrunNames  = []string{Finish: "finish", Cut: "cut"}

	modelAPIsElsewhere = map[string]string{"azure": "openai", "claude": "anthropic", "google": "gemini", "vertex": "gemini"}
	overrunsElsewhere  = map[string]string{"continue": "finish", "allow": "finish", "stop": "cut", "truncate": "cut"}
)

// ParseModelAPI parses "auto", "openai", "anthropic" or "gemini".
func ParseModelAPI(name string) (ModelAPI, error) {
	i, err := parseWord(modelAPINames, modelAPIsElsewhere, name)
	return ModelAPI(i), err
}

// String returns the name, which ParseModelAPI accepts.
func (a ModelAPI) String() string { return wordOf(modelAPINames, int(a), "ModelAPI") }

// ParseOverrun parses "finish" or "cut".
func ParseOverrun(name string) (Overrun, error) {
	i, err := parseWord(overrunNames, overrunsElsewhere, name)
	return Overrun(i), err
}

// String returns the name, which ParseOverrun accepts.
func (o Overrun) String() string { return wordOf(overrunNames, int(o), "Overrun") }

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

// tokens reads how a rule counts tokens.
func (p *parser) tokens(e *document.Element) *Tokens {
	f := p.fields(e, "tokens", tokenFields)
	if f == nil {
		return nil
	}
	t := new(Tokens)
	t.API, _ = word(p, f["api"], "tokens: api", ParseModelAPI)
	if t.Weights = p.weights(f["weights"], "tokens: weights"); t.Weights == (Weights{oneUnit, oneUnit, oneUnit}) {
		t.Weights = Weights{}
	}
	t.Models = p.models(f["models"])
	if t.DefaultOutput = p.integer(f["default_output"], "E030", "tokens: default_output", 1, maxTokens); t.DefaultOutput == defaultOutput {
		t.DefaultOutput = 0
	}
	t.OnOverrun, _ = word(p, f["on_overrun"], "tokens: on_overrun", ParseOverrun)
	return t
}

// weights reads what tokens cost. What is not given costs as much as usual; a cached token as
// much as another.
func (p *parser) weights(e *document.Element, field string) (w Weights) {
	f := p.fields(e, field, weightFields)
	if f == nil {
		return Weights{}
	}
	weight := func(name string, usual Weight) Weight {
		v := f[name]
		if v == nil {
			return usual
		}
		text, ok := p.text(v, field+": "+name, maxText)
		if !ok {
			return usual
		}
		n, err := ParseWeight(text)
		if err != nil {
			p.errorf("E030", v.Place, field+": "+name, "%v", err)
			return usual
		}
		return n
	}
	w.Input, w.Output = weight("input", oneUnit), weight("output", oneUnit)
	if w.Cached = weight("cached", w.Input); w == (Weights{}) {
		p.errorf("E030", e.Place, field, "all weights are 0, so no request would cost anything; write one above 0")
	}
	return w
}

// models reads weights by model.
func (p *parser) models(e *document.Element) map[string]Weights {
	const field = "tokens: models"
	if e != nil && e.Kind != document.Mapping {
		p.errorf("E006", e.Place, field, "this is %s; write models and their weights, as in {gpt-4o: {input: 2.5, output: 10}}", e.Describe())
	}
	if e == nil || len(e.Members) == 0 {
		return nil
	}
	if len(e.Members) > maxModels {
		p.errorf("E002", e.Place, field, "%d models exceed the maximum of %d; use beginnings of names, such as gpt-4o*", len(e.Members), maxModels)
		return nil
	}
	models := make(map[string]Weights, len(e.Members))
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
		models[name] = w
	}
	return models
}

func tokensElement(t *Tokens) *document.Element {
	if t == nil {
		return nil
	}
	e := &document.Element{Kind: document.Mapping}
	e.Add("api", unless(AutoAPI.String(), t.API.String(), document.NewText))
	if t.Weights != (Weights{}) {
		e.Add("weights", weightsElement(t.Weights))
	}
	models := &document.Element{Kind: document.Mapping}
	for _, name := range slices.Sorted(maps.Keys(t.Models)) {
		models.Add(name, weightsElement(t.Models[name]))
	}
	e.Add("models", models.OrNil())
	e.Add("default_output", unless(0, t.DefaultOutput, document.NewInteger))
	e.Add("on_overrun", unless(Finish.String(), t.OnOverrun.String(), document.NewText))
	return e
}

func weightsElement(w Weights) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	number := func(w Weight) *document.Element { return document.NewNumber(w.String()) }
	e.Add("input", unless(oneUnit, w.Input, number))
	e.Add("output", unless(oneUnit, w.Output, number))
	e.Add("cached", unless(w.Input, w.Cached, number))
	return e
}
