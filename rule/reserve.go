package rule

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/internal/document"
)

// Reserve is how much of what a request may use is reserved before it is answered. The zero value is all
// of it, so that requests at the same time never exceed a limit together.
type Reserve struct {
	// Quantile is the percentage of answers of a model for whose length to reserve, such as 95. The engine learns
	// it from answers of several clients; before that, all is reserved that a request may use. It excludes
	// Output. Default 0: as many tokens as a request may use.
	Quantile Quantile

	// Output is the number of tokens to reserve for each answer, if the request may use more. Default 0:
	// as many as it may use.
	Output int64

	// AtMost is how much of each limit one request reserves at most, however long its answer may be.
	// The tokens of its prompt are reserved in any case. Default all of it.
	AtMost Share

	// AtMostUnits is AtMost as a number of units. Default no maximum.
	AtMostUnits int64
}

// Ask is what a request to a language model asks for under a rule, in units.
type Ask struct {
	Prompt   int64 // for its prompt alone
	Reserved int64 // for the answers that are expected, before a share of the limit is known
	Most     int64 // for the longest answers
}

// Ask returns what a request to a language model asks for, if each answer is expected to have so many tokens; 0
// if that is not known. The error is a [RequestError].
func (c *Entry) Ask(p *Prompt, expected int64) (a Ask, err error) {
	longest := c.mostOutput(p)
	if a.Most, err = c.tokenUnits(p, longest); err != nil {
		return a, err
	}
	a.Prompt, a.Reserved = a.Most, a.Most
	r := &c.Tokens.Reserve
	if *r == (Reserve{}) {
		return a, nil
	}
	if a.Prompt, err = c.tokenUnits(p, 0); err != nil {
		return a, err
	}
	if r.Quantile == 0 {
		expected = r.Output
	}
	if expected > 0 {
		a.Reserved, err = c.tokenUnits(p, min(longest, p.answers(expected)))
	}
	return a, err
}

// Answer returns how many tokens each answer to a request had, for a rule that reserves by a quantile of that.
// It is false if there was none, or its length is not known, or it would have been longer. One that was cut
// counts twice, or reservations that cut could never grow again.
func (c *Entry) Answer(req *Request, resp *Response) (tokens int64, known bool) {
	p := req.Prompt
	if c.Tokens == nil || c.Tokens.Reserve.Quantile == 0 || p == nil || resp.Tokens == nil || resp.Status >= http.StatusBadRequest {
		return 0, false
	}
	n := p.answers(1)
	if n == 0 || resp.Unfinished && !resp.Cut {
		return 0, false
	}
	tokens = (clamp(resp.Tokens.Output) + n - 1) / n
	if resp.Cut {
		tokens *= 2
	}
	return tokens, true
}

// What a request to a language model uses at most. More is a mistake of who reports it.
const (
	plausibleTokens = 10_000_000 // of a prompt, and of an answer of a model whose maximum is not known
	plausibleTimes  = 4          // what an answer has at most, as multiple of the model's maximum, because price lists may be old
	plausibleCalls  = 10_000     // of the vendor's tools

	plausibleAnswers = 128 // to one request
)

// Plausible returns what the usage of a request is counted as: as it is, or true and no more than is plausible.
func (c *Entry) Plausible(p *Prompt, u Usage) (counted Usage, capped bool) {
	most, answers := int64(plausibleTokens), int64(1)
	if p != nil {
		answers = max(1, min(p.answers(1), plausibleAnswers))
		if n := c.prices.maxOutput(p.Model); n > 0 {
			most = plausibleTimes * n
		}
	}
	counted = u
	counted.Input = min(u.Input, plausibleTokens)
	counted.Output = min(u.Output, times(most, answers))
	counted.ToolCalls = min(u.ToolCalls, plausibleCalls)
	for _, n := range []*int64{&counted.Cached, &counted.CacheWrite, &counted.CacheWrite1h, &counted.AudioInput, &counted.ImageInput} {
		*n = min(*n, counted.Input)
	}
	for _, n := range []*int64{&counted.Reasoning, &counted.AudioOutput, &counted.ImageOutput} {
		*n = min(*n, counted.Output)
	}
	return counted, counted.Input < u.Input || counted.Output < u.Output || counted.ToolCalls < u.ToolCalls
}

// Quantile is a percentage of answers, from 50 to 99.
type Quantile uint8

// String returns a quantile such as "p95", and "max" for 0.
func (q Quantile) String() string {
	if q == 0 {
		return maxOutputWord
	}
	return "p" + strconv.Itoa(int(q))
}

func parseQuantile(text string) (Quantile, bool) {
	digits, ok := strings.CutPrefix(text, "p")
	n, err := strconv.Atoi(digits)
	return Quantile(n), ok && err == nil && n >= leastQuantile && n <= mostQuantile && len(digits) == 2
}

const leastQuantile, mostQuantile = 50, 99

// Reserve returns how many units to reserve under limits of the rule before a request is answered, and how many at most
// if its answer is longer than expected.
func (c *Entry) Reserve(a Ask, limits []*weir.Compiled) (units, ceiling int64) {
	most := int64(weir.MaxUnits)
	if n := c.Tokens.Reserve.AtMostUnits; n > 0 {
		most = n
	}
	if share := c.Tokens.Reserve.AtMost; share > 0 {
		for _, l := range limits {
			if l.Algorithm() != weir.InFlight {
				most = min(most, share.of(l.Capacity()))
			}
		}
	}
	ceiling = max(1, min(a.Most, max(most, a.Prompt)))
	return max(1, min(a.Reserved, ceiling)), ceiling
}

// of is a part of a number, at least 1.
func (s Share) of(n int64) int64 {
	whole, rest := n/int64(allOfIt), n%int64(allOfIt)
	return max(1, whole*int64(s)+rest*int64(s)/int64(allOfIt))
}

// answers is how many tokens all answers to a request have, if each has so many.
func (p *Prompt) answers(each int64) int64 {
	n := max(0, p.Answers)
	if p.MaxOutput > 0 {
		n += max(1, p.Bounded)
	}
	return times(each, n)
}

// times is a product, or maxTokens.
func times(a, b int64) int64 {
	if b > 0 && a > maxTokens/b {
		return maxTokens
	}
	return a * b
}

// mostOutput is how many tokens the answers can have at most: as the client says, but none more than the
// model can write. An answer without a maximum is expected to have no more than DefaultOutput.
func (c *Entry) mostOutput(p *Prompt) int64 {
	bounded, output := clamp(p.MaxOutput), c.Tokens.DefaultOutput
	if most := c.prices.maxOutput(p.Model); most > 0 {
		bounded = min(bounded, times(most, max(1, p.Bounded)))
		if output = min(output, most); output == 0 {
			output = most
		}
	}
	if output == 0 {
		output = defaultOutput
	}
	return min(times(output, max(0, p.Answers))+bounded, maxTokens)
}

// tokenUnits is the cost of a request with so many tokens of answers. The error is a [RequestError].
func (c *Entry) tokenUnits(p *Prompt, output int64) (int64, error) {
	if p.Unclear != "" && (c.Tokens.priced() || len(c.Tokens.Models) > 0) {
		return 0, &RequestError{Status: http.StatusBadRequest, Reason: p.Unclear}
	}
	if !c.Tokens.priced() {
		return c.Tokens.estimate(p, output), nil
	}
	if *p == (Prompt{}) {
		return 0, nil // nothing is generated: a list of models, or the tokens of a text
	}
	one, err := c.prices.price(p.Model, c.money)
	if err != nil {
		return 0, err
	}
	return one.most(p, output), nil
}

func (r *Reserve) validate() error {
	switch {
	case r.Output < 0 || r.Output > maxTokens:
		return fmt.Errorf("tokens: reserve: output: %d is out of range; write 1 to %d", r.Output, int64(maxTokens))
	case r.Quantile > mostQuantile || r.Quantile > 0 && (r.Quantile < leastQuantile || r.Output > 0):
		return fmt.Errorf("tokens: reserve: output: p%d, beside %d tokens, is no quantile; write 50 to 99, or a number of tokens", r.Quantile, r.Output)
	case r.AtMost < 0 || r.AtMost > allOfIt:
		return fmt.Errorf("tokens: reserve: at_most: %d is no share of a limit; write 1 to 1000 tenths of a percent", r.AtMost)
	case r.AtMostUnits < 0 || r.AtMostUnits > weir.MaxUnits:
		return fmt.Errorf("tokens: reserve: at_most: %d is out of range; write 1 to %d", r.AtMostUnits, int64(weir.MaxUnits))
	case r.AtMost > 0 && r.AtMostUnits > 0:
		return errors.New("tokens: reserve: at_most is a share of the limit or a number of units; write one of them")
	}
	return nil
}

const maxOutputWord = "max"

var reserveFields = newTable(
	field[Tokens]{"output", (*parser).reserveOutput, func(t *Tokens) *document.Element {
		if t.Reserve.Quantile > 0 {
			return document.NewText(t.Reserve.Quantile.String())
		}
		return unless(0, t.Reserve.Output, document.NewInteger)
	}},
	field[Tokens]{"at_most", (*parser).reserveAtMost, func(t *Tokens) *document.Element {
		switch r := &t.Reserve; {
		case r.AtMost > 0:
			return document.NewText(r.AtMost.String())
		case r.AtMostUnits > 0 && t.priced():
			return document.NewText(Weight(r.AtMostUnits).decimal() + t.Price)
		default:
			return unless(0, r.AtMostUnits, document.NewInteger)
		}
	}},
)

func (p *parser) reserveOutput(e *document.Element, path string, t *Tokens) {
	text, ok := p.text(e, path, maxText)
	if !ok || text == maxOutputWord {
		return
	}
	if q, isQuantile := parseQuantile(text); isQuantile {
		t.Reserve.Quantile = q
		return
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > maxTokens {
		p.errorf("E030", e.Position, path, "%s is neither a number of tokens nor a quantile; write max, p50 to p99, or 1 to %d", document.Quote(document.Clip(text, maxName)), int64(maxTokens))
		return
	}
	t.Reserve.Output = n
}

func (p *parser) reserveAtMost(e *document.Element, path string, t *Tokens) {
	text, ok := p.text(e, path, maxText)
	if !ok {
		return
	}
	var err error
	switch units, currency, _, wrong := parseMoney(text + "/"); {
	case strings.HasSuffix(text, "%"):
		t.Reserve.AtMost, err = ParseShare(text)
	case currency != t.Price && currency != "":
		err = fmt.Errorf("%s is in %s, and the rule has no price: %s; write a share of the limit, such as 5%%, or a number of units", document.Quote(document.Clip(text, maxName)), currencyName(currency), currency)
	case currency != "":
		if err = wrong; err == nil {
			t.Reserve.AtMostUnits, err = parseUnits(units)
		}
	case t.priced():
		err = fmt.Errorf("%s has no currency; write a share of the limit, such as 5%%, or %s, such as 0.50%s", document.Quote(document.Clip(text, maxName)), currencyName(t.Price), t.Price)
	default:
		t.Reserve.AtMostUnits, err = parseUnits(text)
	}
	if err != nil {
		p.errorf("E030", e.Position, path, "%v", err)
	}
}

// parseUnits parses a number of units.
func parseUnits(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > weir.MaxUnits {
		return 0, fmt.Errorf("%s is neither a share of the limit nor a number of units; write for example 5%%, or 1 to %d", document.Quote(document.Clip(text, maxName)), int64(weir.MaxUnits))
	}
	return n, nil
}
