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

var (
	weightFields = []string{"input", "output", "cached"}

	tokenFields = newTable(
		wordField("api", ParseModelAPI, func(t *Tokens) *ModelAPI { return &t.API }),
		field[Tokens]{"weights", func(p *parser, e *document.Element, path string, t *Tokens) {
			if w := p.weights(e, path); w != (Weights{oneUnit, oneUnit, oneUnit}) {
				t.Weights = w
			}
		}, func(t *Tokens) *document.Element { return unless(Weights{}, t.Weights, weightsElement) }},
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
		e.Add(name, weightsElement(t.Models[name]))
	}
	return e.OrNil()
}

func weightsElement(w Weights) *document.Element {
	e := &document.Element{Kind: document.Mapping}
	number := func(w Weight) *document.Element { return document.NewNumber(w.String()) }
	e.Add("input", unless(oneUnit, w.Input, number))
	e.Add("output", unless(oneUnit, w.Output, number))
	e.Add("cached", unless(w.Input, w.Cached, number))
	return e
}
