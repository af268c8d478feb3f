package rule_test

import (
	"net/netip"
	"testing"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

// Tokens cost their weights, exactly, and the sum is rounded up once.
func TestTokensCost(t *testing.T) {
	const most = int64(rule.MaxWeight)
	usual := rule.Weights{Input: 1e6, Output: 4e6, Cached: 1e5}
	for _, c := range []struct {
		weights rule.Weights
		usage   rule.Usage
		want    int64
	}{
		{usual, rule.Usage{Input: 100, Output: 10}, 140},
		{usual, rule.Usage{Input: 100, Cached: 30, Output: 10}, 70 + 3 + 40},
		{usual, rule.Usage{Input: 100, Cached: 31, Output: 10}, 69 + 4 + 40}, // 3.1
		{usual, rule.Usage{Input: 1, Cached: 1}, 1},
		{usual, rule.Usage{}, 0},
		{usual, rule.Usage{Input: 5, Cached: 50}, 1},
		{usual, rule.Usage{Input: -5, Cached: -7, Output: -1}, 0},
		{rule.Weights{Input: 1, Output: 1}, rule.Usage{Input: 1, Output: 1}, 1},
		{rule.Weights{Input: 1e5}, rule.Usage{Input: 30}, 3}, // as floats, 3.0000000000000004
		{rule.Weights{Input: rule.MaxWeight, Output: rule.MaxWeight, Cached: rule.MaxWeight}, rule.Usage{Input: 1 << 62, Cached: 1 << 61, Output: 1 << 62}, weir.MaxUnits},
		{rule.Weights{Input: 1 << 62}, rule.Usage{Input: 1}, 1000 * most / 1e6}, // prices can be so high
		{rule.Weights{}, rule.Usage{Input: 5, Cached: 1, Output: 6}, 11},
	} {
		tokens := rule.Tokens{Weights: c.weights}
		if got := tokens.Cost("m", c.usage); got != c.want {
			t.Errorf("%+v of %+v: %d, want %d", c.weights, c.usage, got, c.want)
		}
	}
}

// Each kind of tokens has its own weight, or that of the kind it belongs to; none is free by itself.
func TestTokensKinds(t *testing.T) {
	usage := rule.Usage{
		Input: 1000, Cached: 400, CacheWrite: 200, CacheWrite1h: 100, AudioInput: 50, ImageInput: 30,
		Output: 500, Reasoning: 300, AudioOutput: 60, ImageOutput: 40, ToolCalls: 2,
	}
	for weights, want := range map[string]int64{
		"{input: 1, output: 2}":                                       1000 + 1000,
		"{input: 1, output: 2, cached: 0.1}":                          600 + 40 + 1000,
		"{input: 1, output: 2, cache_write: 1.25}":                    700 + 250 + 125 + 1000,
		"{input: 1, output: 2, cache_write: 1.25, cache_write_1h: 2}": 700 + 250 + 200 + 1000,
		"{input: 1, output: 2, cache_write_1h: 2}":                    900 + 200 + 1000,
		"{input: 1, output: 2, cache_write: 0}":                       700 + 1000,
		"{input: 1, output: 2, audio_input: 8, image_input: 3}":       920 + 400 + 90 + 1000,
		"{input: 1, output: 2, reasoning: 3}":                         1000 + 400 + 900,
		"{input: 1, output: 2, reasoning: 0}":                         1000 + 400,
		"{input: 1, output: 2, audio_output: 20, image_output: 12}":   1000 + 800 + 1200 + 480,
		"{input: 1, output: 2, tool_call: 10000}":                     1000 + 1000 + 20000,
	} {
		r := settling(t, `{id: a, key: ip, limit: 1000000/1m, tokens: {weights: `+weights+`}}`)
		if got := r.Tokens.Cost("m", usage); got != want {
			t.Errorf("%s: %d, want %d", weights, got, want)
		}
	}
	// What is reported twice counts once, and what a vendor reports beyond the whole does not count.
	r := settling(t, `{id: a, key: ip, limit: 1000000/1m, tokens: {weights: {input: 1, cache_write: 2, cached: 0, audio_output: 5}}}`)
	for _, c := range []struct {
		usage rule.Usage
		want  int64
	}{
		{rule.Usage{Input: 10, CacheWrite: 8, Cached: 8}, 16},
		{rule.Usage{Input: 10, CacheWrite: 1 << 62, CacheWrite1h: 1 << 62}, 20},
		{rule.Usage{Input: 10, CacheWrite: -5, Cached: -5}, 10},
		{rule.Usage{Output: 10, AudioOutput: 6, Reasoning: 9}, 34},
	} {
		if got := r.Tokens.Cost("m", c.usage); got != c.want {
			t.Errorf("%+v: %d, want %d", c.usage, got, c.want)
		}
	}
}

// What is asked to be cached is reserved at the price of that, and thinking at its own.
func TestTokensReserveKinds(t *testing.T) {
	r := settling(t, `{id: a, key: ip, limit: 1000000/1m, tokens: {weights: {input: 1, output: 2, cache_write: 1.25, cache_write_1h: 2, reasoning: 3}}}`)
	for _, c := range []struct {
		prompt rule.Prompt
		want   int64
	}{
		{rule.Prompt{Input: 100, MaxOutput: 10}, 130},
		{rule.Prompt{Input: 100, MaxOutput: 10, Caches: true}, 230},
	} {
		if got, err := r.Estimate(&rule.Request{Prompt: &c.prompt}); err != nil || got != c.want {
			t.Errorf("%+v: %d, want %d", c.prompt, got, c.want)
		}
	}
}

// A model has the weights of its name, then of the longest beginning, then those of all.
func TestTokensModels(t *testing.T) {
	r := settling(t, `{id: a, key: ip, limit: 1000000/1m, tokens: {weights: {input: 9}, models: {gpt-4o: {input: 1}, gpt-4o*: {input: 2}, gpt*: {input: 3}, o3*: {}}}}`)
	for model, want := range map[string]int64{"gpt-4o": 10, "gpt-4o-mini": 20, "gpt-5": 30, "claude": 90, "": 90, "o3": 10} {
		req := &rule.Request{Prompt: &rule.Prompt{Model: model, Input: 10}}
		if got, err := r.Estimate(req); err != nil || got != want {
			t.Errorf("%s: %d, want %d", model, got, want)
		}
	}
}

// What is reserved is the prompt and the longest answer; what counts is the usage.
func TestTokensSettle(t *testing.T) {
	r := settling(t, `{id: a, key: ip, limit: 1000000/1m, tokens: {weights: {output: 2}, default_output: 50}}`)
	if !r.Settles() {
		t.Error("the rule does not settle")
	}
	for _, c := range []struct {
		req  rule.Request
		want int64
	}{
		{rule.Request{Prompt: &rule.Prompt{Input: 10, MaxOutput: 7}}, 24},
		{rule.Request{Prompt: &rule.Prompt{Input: 10, Answers: 3}}, 310},
		{rule.Request{Prompt: &rule.Prompt{Input: 10}, Cost: 99}, 10},
		{rule.Request{Prompt: &rule.Prompt{Input: 1 << 62, MaxOutput: 1 << 62, Answers: 1 << 62}}, 3 << 40},
		{rule.Request{Cost: 99}, 99}, // a caller that knows only the cost
		{rule.Request{}, 1},
	} {
		if got, err := r.Estimate(&c.req); err != nil || got != c.want {
			t.Errorf("%+v: %d, want %d", c.req, got, c.want)
		}
	}
	req := &rule.Request{Prompt: &rule.Prompt{Input: 10, MaxOutput: 7}}
	if got, err := r.Actual(req, &rule.Response{Status: 200, Tokens: &rule.Usage{Input: 12, Output: 100}}, 24); got != 212 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if got, err := r.Actual(req, &rule.Response{Status: 200}, 24); got != 24 || err != nil {
		t.Errorf("without usage: %d, %v", got, err)
	}
	if got, err := r.Actual(req, &rule.Response{Status: 400, Tokens: &rule.Usage{}}, 24); got != 0 || err != nil {
		t.Errorf("a request that failed: %d, %v", got, err)
	}
}

// The rule does not apply to a request that uses no tokens.
func TestTokensApply(t *testing.T) {
	r := settling(t, `{id: a, key: ip, limit: 1000000/1m, tokens: {weights: {input: 0}}}`)
	for name, c := range map[string]struct {
		prompt *rule.Prompt
		want   int
	}{"unknown": {nil, 1}, "some": {&rule.Prompt{Answers: 1}, 1}, "none": {&rule.Prompt{}, 0}, "of no weight": {&rule.Prompt{Input: 5}, 0}} {
		_, ends, err := rule.Hit{Entry: r}.Identities(nil, nil, &rule.Request{IP: netip.MustParseAddr("192.0.2.1"), Prompt: c.prompt})
		if len(ends) != c.want || err != nil {
			t.Errorf("%s: it counts for %d clients, %v", name, len(ends), err)
		}
	}
}

// Whose body is to be read is known without its attributes.
func TestCountsTokens(t *testing.T) {
	set, problems := rule.Parse("", []byte(`rules:
  - {id: all, key: ip, limit: 1/1s}
  - {id: off, key: ip, limit: 1/1s, mode: off, tokens: {}}
  - {id: model, match: {method: POST, path: /v1/**, attributes: {model: gpt-4o}}, key: user, limit: 9/1s, tokens: {api: openai}}
  - {id: more, match: {path: /v1/messages}, key: user, limit: 9/1s, tokens: {}}`))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, path, want string }{
		{"POST", "/v1/messages", "model"}, {"GET", "/v1/messages", "more"}, {"POST", "/v1/x", "model"}, {"POST", "/v2", ""}, {"GET", "/v1/x", ""},
	} {
		got := ""
		if e := table.CountsTokens(nil, &rule.Request{Method: c.method, Path: c.path}); e != nil {
			got = e.ID
		}
		if got != c.want {
			t.Errorf("%s %s: %q, want %q", c.method, c.path, got, c.want)
		}
	}
	none, err := rule.Compile(&rule.Set{Rules: set.Rules[:2]}, rule.Options{})
	if err != nil || none.CountsTokens(nil, &rule.Request{Method: "POST", Path: "/v1/x"}) != nil {
		t.Error("a rule that is off counts tokens")
	}
}

func TestWeights(t *testing.T) {
	for text, want := range map[string]rule.Weight{"0": 0, "1": 1e6, "0.1": 1e5, ".5": 5e5, "2.500001": 2500001, "1000000": rule.MaxWeight, "007": 7e6} {
		if got, err := rule.ParseWeight(text); got != want || err != nil {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", "1.", "-1", "+1", "1e3", "0.0000001", "1000000.1", "9999999", "99999999", "1,5", "NaN", "0x1", "1.2.3", " 1", "١"} {
		if got, err := rule.ParseWeight(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
	for _, w := range []rule.Weight{0, 1, 1e5, 1e6, 25e5, 1234567, rule.MaxWeight} {
		if got, err := rule.ParseWeight(w.String()); got != w || err != nil {
			t.Errorf("%d is written as %s", w, w)
		}
	}
}

// Tokens that cannot be written do not compile.
func TestTokensThatCannotBeWritten(t *testing.T) {
	for _, tokens := range []rule.Tokens{
		{API: 9}, {OnOverrun: 9}, {DefaultOutput: -1}, {DefaultOutput: 1 << 60}, {Weights: rule.Weights{Input: -1}}, {Weights: rule.Weights{Output: rule.MaxWeight + 1}},
		{Models: map[string]rule.Weights{"m": {}}}, {Models: map[string]rule.Weights{"m": {Cached: -1}}}, {Models: map[string]rule.Weights{"m": {Input: 1, Cached: -1}}}, {Models: map[string]rule.Weights{"m": {Reasoning: rule.Free}}}, {Weights: rule.Weights{CacheWrite: -2}},
	} {
		set := &rule.Set{Rules: []rule.Rule{{ID: "a", Key: []rule.Source{{Kind: rule.IP}}, Quota: rule.Quota{Rates: []rule.Rate{{N: 1, Period: 1e9}}}, Tokens: &tokens}}}
		if _, err := rule.Compile(set, rule.Options{}); err == nil {
			t.Errorf("%+v compiles", tokens)
		}
	}
}
