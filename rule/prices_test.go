package rule_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/rule"
)

const priceList = `{
 "sample_spec": {"input_cost_per_token": 0, "max_tokens": "LEGACY parameter. set to max_output_tokens", "input_cost_per_audio_token": "the price"},
 "gpt-4o": {"input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05, "cache_read_input_token_cost": 1.25e-06, "max_output_tokens": 16384, "mode": "chat", "supports_vision": true},
 "gpt-4o-mini": {"input_cost_per_token": "1.5e-07", "output_cost_per_token": 6e-07, "cache_read_input_token_cost": 7.5e-08},
 "ft:gpt-4o-2024-08-06": {"input_cost_per_token": 3.75e-06, "output_cost_per_token": 1.5e-05},
 "azure/gpt-4o-eu": {"input_cost_per_token": 2.75e-06, "output_cost_per_token": 1.1e-05},
 "claude-sonnet-4-5": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "cache_read_input_token_cost": 3e-07,
   "cache_creation_input_token_cost": 3.75e-06, "cache_creation_input_token_cost_above_1hr": 6e-06,
   "input_cost_per_token_above_200k_tokens": 6e-06, "output_cost_per_token_above_200k_tokens": 2.25e-05,
   "cache_creation_input_token_cost_above_1hr_above_200k_tokens": 1.2e-05,
   "search_context_cost_per_query": {"search_context_size_low": 0.01, "search_context_size_high": 0.01}},
 "anthropic.claude-3-5-sonnet-20240620-v1:0": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05},
 "gemini-2.5-flash": {"input_cost_per_token": 3e-07, "output_cost_per_token": 2.5e-06, "input_cost_per_audio_token": 1e-06, "output_cost_per_reasoning_token": 2.5e-06},
 "gemini-2.5-flash-image": {"input_cost_per_token": 3e-07, "output_cost_per_token": 2.5e-06, "output_cost_per_image_token": 3e-05},
 "perplexity/sonar": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06, "input_cost_per_request": 0.005},
 "text-embedding-3-small": {"input_cost_per_token": 2e-08, "output_cost_per_token": 0.0, "mode": "embedding"},
 "tiny": {"input_cost_per_token": 1.0000001e-12, "output_cost_per_token": 1e-400},
 "free": {"input_cost_per_token": 0, "output_cost_per_token": 0},
 "whisper": {"input_cost_per_second": 0.0001}
}`

func pricesOf(t *testing.T, text string) *rule.Prices {
	t.Helper()
	p := new(rule.Prices)
	if err := p.Read("prices.json", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return p
}

func priced(t *testing.T, p *rule.Prices, text string) *rule.Entry {
	t.Helper()
	set, problems := rule.Parse("", []byte("rules:\n  - "+text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	table, err := rule.Compile(set, rule.Options{Prices: p})
	if err != nil {
		t.Fatal(err)
	}
	return table.Rules()[0]
}

const spend = `{id: spend, key: user, limit: 20usd/day, tokens: {price: usd}}`

// A request is charged in the tier in which it was served, and reserved in the dearer of that which it asks for and the standard one.
func TestServiceTiers(t *testing.T) {
	r := priced(t, pricesOf(t, `{"m": {"input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06, "cache_read_input_token_cost": 5e-07,
		"input_cost_per_token_above_200k_tokens": 4e-06, "input_cost_per_token_flex": 1e-06, "input_cost_per_token_priority": 3.5e-06,
		"input_cost_per_token_above_200k_tokens_priority": 7e-06, "output_cost_per_token_batches": 4e-06}}`), spend)
	for _, c := range []struct {
		tier       rule.ServiceTier
		cost, long int64
		reserved   int64
	}{
		{rule.StandardTier, 2000*90 + 500*10 + 8000, 300 * 4000, 2000*100 + 8000},
		{rule.FlexTier, 1000*90 + 500*10 + 8000, 300 * 4000, 2000*100 + 8000}, // the step has no price of its own
		{rule.PriorityTier, 3500*90 + 500*10 + 8000, 300 * 7000, 3500*100 + 8000},
		{rule.BatchTier, 2000*90 + 500*10 + 4000, 300 * 4000, 2000*100 + 8000},
	} {
		cost, _ := r.TokenCost("m", rule.Usage{Input: 100_000, Cached: 10_000, Output: 1000, Tier: c.tier})
		long, _ := r.TokenCost("m", rule.Usage{Input: 300_000, Tier: c.tier})
		reserved, err := r.Estimate(&rule.Request{Prompt: &rule.Prompt{Model: "m", Input: 100_000, MaxOutput: 1000, Tier: c.tier}})
		if cost != c.cost || long != c.long || reserved != c.reserved || err != nil {
			t.Errorf("tier %d: %d, %d, %d, want %d, %d, %d: %v", c.tier, cost, long, reserved, c.cost, c.long, c.reserved, err)
		}
	}
	for name, want := range map[string]rule.ServiceTier{"flex": rule.FlexTier, "Priority": rule.PriorityTier, "batch": rule.BatchTier, "auto": rule.StandardTier, "": rule.StandardTier, "x": rule.StandardTier} {
		if got := rule.ParseServiceTier(name); got != want {
			t.Errorf("%s is %d", name, got)
		}
	}
}

func TestMoneyText(t *testing.T) {
	for micros, want := range map[int64]string{
		0: "$0.00", 1: "$0.000001", 10_000: "$0.01", 12_500: "$0.0125", 1_500_000: "$1.50", 20_000_000: "$20.00", 999_999_999: "$999.999999",
		1_234_500_000: "$1,234.50", 5_000_000_000_000: "$5,000,000.00", -500_000: "-$0.50",
	} {
		if got := rule.MoneyText("usd", micros); got != want {
			t.Errorf("%d is %s, want %s", micros, got, want)
		}
	}
	if got := rule.MoneyText("eur", -1_234_500_000); got != "-1,234.50 EUR" {
		t.Error(got)
	}
}

// What a response costs is exact to the millionth of a dollar, and rounded up once.
func TestPrices(t *testing.T) {
	r := priced(t, pricesOf(t, priceList), spend)
	for _, c := range []struct {
		model string
		usage rule.Usage
		want  int64
	}{
		{"gpt-4o", rule.Usage{Input: 1000, Output: 100}, 2500 + 1000},
		{"gpt-4o", rule.Usage{Input: 1117, Cached: 1024, Output: 46, Reasoning: 20}, 1973}, // 232.5 + 1280 + 460 = 1972.5
		{"gpt-4o-mini", rule.Usage{Input: 1}, 1},
		{"gpt-4o-mini", rule.Usage{Input: 19, Output: 10}, 9},                                                                       // 2.85 + 6
		{"claude-sonnet-4-5", rule.Usage{Input: 4096, Cached: 1800, CacheWrite: 148, CacheWrite1h: 100, Output: 503}, 15384},        // 2048·3 + 540 + 555 + 600 + 7545
		{"claude-sonnet-4-5", rule.Usage{Input: 14573, Cached: 7123, CacheWrite: 7345, Output: 6039, ToolCalls: 1}, 130581},         // 315 + 2136.9 + 27543.75 + 90585 + 10000
		{"claude-sonnet-4-5", rule.Usage{Input: 200_000, Output: 10}, 600_150},                                                      // not above the step
		{"claude-sonnet-4-5", rule.Usage{Input: 200_001, Cached: 1, CacheWrite: 1, CacheWrite1h: 1, Output: 10}, 1_200_230},         // 199998·6 + 0.3 + 3.75 + 12 + 225
		{"gemini-2.5-flash", rule.Usage{Input: 1000, Cached: 600, AudioInput: 200, ImageInput: 50, Output: 40, Reasoning: 10}, 540}, // 800·0.3 + 200 + 100
		{"gemini-2.5-flash-image", rule.Usage{Input: 263, ImageInput: 258, Output: 1290, ImageOutput: 1290}, 38779},                 // 78.9 + 38700
		{"perplexity/sonar", rule.Usage{Input: 5, Output: 5}, 5010},
		{"perplexity/sonar", rule.Usage{}, 0}, // it failed
		{"text-embedding-3-small", rule.Usage{Input: 8}, 1},
		{"tiny", rule.Usage{Input: 1_000_000}, 2}, // rounded up to two millionths of a millionth each
		{"tiny", rule.Usage{Output: 1_000_000}, 1},
		{"free", rule.Usage{Input: 5, Output: 5}, 0},
	} {
		if got, known := r.TokenCost(c.model, c.usage); got != c.want || !known {
			t.Errorf("%s, %+v: %d, %v, want %d", c.model, c.usage, got, known, c.want)
		}
	}
}

// A kind without a price costs as much as the prompt, or as the answer, for long prompts and in each tier, too.
func TestPricesDefaults(t *testing.T) {
	r := priced(t, pricesOf(t, `{"m": {"input_cost_per_token": 1e-06, "input_cost_per_token_above_200k_tokens": 2e-06, "input_cost_per_token_priority": 10e-06},
		"n": {"input_cost_per_token": 1e-06, "output_cost_per_token": 4e-06, "output_cost_per_token_above_200k_tokens": 8e-06, "cache_read_input_token_cost": 5e-07,
			"input_cost_per_token_above_200k_tokens": 2e-06, "output_cost_per_token_flex": 1e-06, "cache_read_input_token_cost_priority": 3e-06}}`), spend)
	for _, c := range []struct {
		model string
		usage rule.Usage
		want  int64
	}{
		{"m", rule.Usage{Input: 1000, Cached: 1000, Output: 1000}, 1000 + 1000},
		{"m", rule.Usage{Input: 300_000, Cached: 300_000}, 600_000},
		{"m", rule.Usage{Input: 300_000, CacheWrite: 300_000, Output: 1000}, 600_000 + 2000},
		{"m", rule.Usage{Input: 300_000, AudioInput: 300_000, Output: 1000, Reasoning: 1000}, 600_000 + 2000},
		{"m", rule.Usage{Input: 100_000, Cached: 100_000, Output: 1000, Tier: rule.PriorityTier}, 1_000_000 + 10_000},
		{"m", rule.Usage{Input: 300_000, Cached: 300_000, Tier: rule.PriorityTier}, 600_000}, // the step has no price of its own
		{"n", rule.Usage{Input: 300_000, Cached: 300_000, Output: 1000, Reasoning: 1000}, 150_000 + 8000},
		{"n", rule.Usage{Input: 1000, Cached: 1000, Output: 1000, ImageOutput: 1000, Tier: rule.FlexTier}, 500 + 1000},
		{"n", rule.Usage{Input: 1000, Cached: 1000, Output: 1000, Tier: rule.PriorityTier}, 3000 + 4000},
	} {
		if got, known := r.TokenCost(c.model, c.usage); got != c.want || !known {
			t.Errorf("%s, %+v: %d, %v, want %d", c.model, c.usage, got, known, c.want)
		}
	}
}

// Of the example, no kind costs less for long prompts than the prompt, but what is read from the cache.
func TestPricesExample(t *testing.T) {
	text, err := os.ReadFile("../examples/prices.json")
	if err != nil {
		t.Fatal(err)
	}
	r := priced(t, pricesOf(t, string(text)), spend)
	for _, c := range []struct {
		usage rule.Usage
		want  int64
	}{
		{rule.Usage{Input: 300_000}, 1_800_000},
		{rule.Usage{Input: 300_000, Cached: 300_000}, 180_000},
		{rule.Usage{Input: 300_000, CacheWrite: 300_000}, 2_250_000},
		{rule.Usage{Input: 300_000, CacheWrite1h: 300_000}, 3_600_000},
	} {
		if got, _ := r.TokenCost("claude-sonnet-4-5", c.usage); got != c.want {
			t.Errorf("%+v: %d, want %d", c.usage, got, c.want)
		}
	}
}

// Names with a vendor, a region, a version or a date are those of their entries, and nothing else is.
func TestPricesOfNames(t *testing.T) {
	r := priced(t, pricesOf(t, priceList), spend)
	for model, want := range map[string]int64{ // of 1000 tokens of input
		"gpt-4o":                                               2500,
		"gpt-4o-2024-08-06":                                    2500,
		"openai/gpt-4o":                                        2500,
		"openrouter/openai/gpt-4o":                             2500,
		"gpt-4o-mini-2024-07-18":                               150,
		"azure/gpt-4o-eu":                                      2750,
		"ft:gpt-4o-2024-08-06:acme::x":                         3750,
		"ft:gpt-4o-2024-08-06":                                 3750,
		"ft:gpt-4o:acme::x":                                    -1,
		"claude-sonnet-4-5-20250929":                           3000,
		"claude-sonnet-4-5@20250929":                           3000,
		"claude-sonnet-4-5-latest":                             3000,
		"anthropic/claude-sonnet-4-5":                          3000,
		"us.anthropic.claude-3-5-sonnet-20240620-v1:0":         3000,
		"bedrock/eu.anthropic.claude-3-5-sonnet-20240620-v1:0": 3000,
		"models/gemini-2.5-flash":                              300,
		"publishers/google/models/gemini-2.5-flash-001":        300,
		"gemini-2.5-flash-lite":                                -1,
		"gpt-4o-audio":                                         -1,
		"gpt-4":                                                -1,
		"whisper":                                              -1,
		"sample_spec":                                          -1,
		"sonar":                                                -1,
		"":                                                     -1,
		strings.Repeat("/", 128):                               -1,
		strings.Repeat("-2024", 25) + "us.":                    -1,
	} {
		got, known := r.TokenCost(model, rule.Usage{Input: 1000})
		if want < 0 && known || want >= 0 && got-want > 5000 || want >= 0 && got != want {
			t.Errorf("%s: %d, %v, want %d", model, got, known, want)
		}
	}
}

// A model without a price is an error that says so, or costs the highest price of each kind.
func TestUnknownPrices(t *testing.T) {
	prompt := &rule.Request{User: "u", Prompt: &rule.Prompt{Model: "gpt-9", Input: 1000, MaxOutput: 10}}
	p := pricesOf(t, priceList)
	r := priced(t, p, spend)
	if _, err := r.Estimate(prompt); err == nil || err.Error() != `rule: The model "gpt-9" has no price, so its cost cannot be counted; choose another model, or ask the operator to add its price.` ||
		err.(*rule.RequestError).Status != http.StatusBadRequest {
		t.Error(err)
	}
	if _, err := r.Estimate(&rule.Request{User: "u", Prompt: &rule.Prompt{Input: 1}}); err == nil || err.Error() != "rule: The request names no model, so its cost cannot be counted; name one." {
		t.Error(err)
	}
	if got, err := r.Estimate(&rule.Request{User: "u", Prompt: &rule.Prompt{}}); got != 0 || err != nil {
		t.Errorf("a request that generates nothing: %d, %v", got, err)
	}
	// The rule applies to it all the same.
	if _, ends, err := (rule.Hit{Entry: r}).Identities(nil, nil, prompt); len(ends) != 1 || err != nil {
		t.Error(ends, err)
	}
	p.UnknownHighest = true
	if got, err := r.Estimate(prompt); got != 6000+225+5000 || err != nil {
		t.Error(got, err)
	}
	if got, known := r.TokenCost("gpt-9", rule.Usage{Input: 100, CacheWrite1h: 100, Output: 10, ImageOutput: 10, ToolCalls: 1}); got != 1200+300+10000+5000 || !known {
		t.Error(got)
	}
	unclear := &rule.Request{User: "u", Prompt: &rule.Prompt{Model: "gpt-4o-mini", Input: 1, Unclear: "It may be another."}}
	if _, err := r.Estimate(unclear); err == nil || err.Error() != "rule: It may be another." || err.(*rule.RequestError).Status != http.StatusBadRequest {
		t.Error(err)
	}
	if _, err := priced(t, nil, `{id: a, key: user, limit: 20/1h, tokens: {weights: {input: 2}}}`).Estimate(unclear); err != nil {
		t.Error(err)
	}
	none := priced(t, nil, spend)
	if _, err := none.Estimate(prompt); err == nil || err.(*rule.RequestError).Status != http.StatusServiceUnavailable {
		t.Error(err)
	}
}

// A list has one currency, which its rules count, and which does not change while weir runs.
func TestCurrencies(t *testing.T) {
	const list = `{"currency": "eur", "m": {"input_cost_per_token": 2e-06, "input_cost_per_request": 1.5}}`
	const text = `{id: spend, key: user, limit: 20eur/day, tokens: {price: eur, reserve: {at_most: 0.25eur}}}`
	euros := pricesOf(t, list)
	r := priced(t, euros, text)
	if got, known := r.TokenCost("m", rule.Usage{Input: 1000}); got != 1_502_000 || !known || euros.Len() != 1 {
		t.Error(got, known, euros.Len())
	}
	limits, err := r.Compile(r.Quota)
	if policy, display := r.DisplayLimit(limits[0]); err != nil || policy != "20eur/day" || display != "20.00 EUR/day" || r.CostUnit() != "eur" || r.Money() != "eur" {
		t.Error(policy, display, r.CostUnit(), r.Money(), err)
	}
	if units, _ := r.Reserve(rule.Ask{Reserved: 1e7, Most: 1e7}, limits); units != 250_000 {
		t.Error(units)
	}
	set, problems := rule.Parse("", []byte("rules:\n  - "+text))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	dollars := pricesOf(t, priceList)
	const wrong = `spend: tokens: price: the rule counts EUR, and the price list is in dollars; write usd, or start weir with a list in EUR, which says "currency": "eur"`
	var invalid *rule.InvalidError
	if _, err := rule.Compile(set, rule.Options{Prices: dollars}); !errors.As(err, &invalid) || invalid.Problems[0].Message != wrong || invalid.Problems[0].Code != "E042" {
		t.Error(err)
	}
	// A rule that says itself what a request costs needs no list.
	priced(t, dollars, `{id: spend, key: user, limit: 20eur/day, cost: 5}`)
	late := new(rule.Prices)
	r = priced(t, late, text)
	if err := late.Read("prices.json", strings.NewReader(priceList)); err != nil {
		t.Fatal(err)
	}
	var denied *rule.RequestError
	if _, err := r.Ask(&rule.Prompt{Model: "gpt-4o", Input: 1}, 0); !errors.As(err, &denied) || denied.Status != http.StatusServiceUnavailable || !strings.Contains(err.Error(), "counts EUR and has a price list in dollars") {
		t.Error(err)
	}
	if _, known := r.TokenCost("gpt-4o", rule.Usage{Input: 1}); known {
		t.Error("a list in dollars prices a rule in euros")
	}
	for text, want := range map[string]string{
		list:                            `it is in EUR, and the list before in dollars, in which budgets are counted; restart weir to change the currency, or write "currency": "usd"`,
		`{"currency": "euro", "m": {}}`: `currency: "euro" is not the code of a currency`,
		`{"currency": {}}`:              `currency: {} is not the code of a currency`,
		`{"currency": "vnd", "m": {"input_cost_per_token": 1000.5}}`: "1000.5 VND are more than 1000, the maximum",
	} {
		if err := dollars.Read("prices.json", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What is reserved covers what is asked to be cached, and a prompt that is long.
func TestPricesReserve(t *testing.T) {
	r := priced(t, pricesOf(t, priceList), spend)
	for _, c := range []struct {
		prompt rule.Prompt
		want   int64
	}{
		{rule.Prompt{Model: "claude-sonnet-4-5", Input: 1000, MaxOutput: 100}, 3000 + 1500},
		{rule.Prompt{Model: "claude-sonnet-4-5", Input: 1000, MaxOutput: 100, Caches: true}, 6000 + 1500},
		{rule.Prompt{Model: "claude-sonnet-4-5", Input: 300_000, MaxOutput: 100}, 1_800_000 + 2250},
		{rule.Prompt{Model: "perplexity/sonar", Input: 10, Answers: 1}, 10 + 1000 + 5000},
		{rule.Prompt{Model: "gpt-4o", Input: 1 << 62, MaxOutput: 1 << 62}, 2_748_779_069_440 + 163_840},
	} {
		if got, err := r.Estimate(&rule.Request{Prompt: &c.prompt}); got != c.want || err != nil {
			t.Errorf("%+v: %d, %v, want %d", c.prompt, got, err, c.want)
		}
	}
}

// A list that cannot be used says where it is wrong, and the one before stays.
func TestPriceMistakes(t *testing.T) {
	p := pricesOf(t, priceList)
	r := priced(t, p, spend)
	one := func(field, value string) string {
		return `{"m": {"input_cost_per_token": 1e-6, "` + field + `": ` + value + `}}`
	}
	for text, want := range map[string]string{
		``:                                    "not a price list in JSON",
		`[]`:                                  "not a price list in JSON",
		`{"m": {"x": NaN}}`:                   "not a price list in JSON",
		`{}`:                                  "no model has input_cost_per_token",
		`{"m": 5}`:                            `"m" has no fields`,
		`{"m": null}`:                         `"m" has no fields`,
		one("output_cost_per_token", "-1e-6"): `"m": output_cost_per_token: -1e-6 is negative`,
		one("output_cost_per_token", `"NaN"`): `output_cost_per_token: "NaN" is not a price`,
		one("output_cost_per_token", `"Inf"`): "more than 1, the maximum",
		one("output_cost_per_token", "1e400"): "more than 1, the maximum",
		one("output_cost_per_token", "2.5"):   "is it a price for a million tokens?",
		one("output_cost_per_token", `"0x1p-20"`):                                                           "is not a price",
		one("output_cost_per_token", `"1/3"`):                                                               "is not a price",
		one("output_cost_per_token", `true`):                                                                "is not a price",
		one("output_cost_per_token", `{"a": 1}`):                                                            "is not a price",
		one("output_cost_per_token", `0.`+strings.Repeat("1", 100)):                                         "is not a price",
		one("output_cost_per_token_above_200k_tokens", `"some"`):                                            "is not a price",
		one("input_cost_per_request", "-1"):                                                                 "is negative",
		`{"` + strings.Repeat("m", 300) + `": {}}`:                                                          "the name of a model has 300 bytes",
		`{"m": "` + strings.Repeat("x", 17<<20) + `"}`:                                                      "more than 16777216 bytes",
		`{` + strings.Repeat(`"m": {},`, 3) + `"n": {}}`:                                                    "no model has",
		`{"m": ` + strings.Repeat(`[`, 1<<20) + strings.Repeat(`]`, 1<<20) + `}`:                            "not a price list in JSON",
		`{"m": ` + strings.Repeat(`{"a":`, 1000) + `1` + strings.Repeat(`}`, 1000) + `}`:                    "no model has",
		`{` + numbered(20_000, func(i int) string { return fmt.Sprintf(`"%0300d": {}, `, i) }) + `"n": {}}`: "20001 models exceed the maximum of 20000",
	} {
		err := p.Read("prices.json", strings.NewReader(text))
		if err == nil || !strings.HasPrefix(err.Error(), "rule: prices.json") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %s", text, err, want)
		}
	}
	if got, known := r.TokenCost("gpt-4o", rule.Usage{Input: 1000}); got != 2500 || !known || p.Len() != 12 {
		t.Errorf("the list is gone: %d, %v, %d models", got, known, p.Len())
	}
	if err := p.Read("prices.json", strings.NewReader(`{"gpt-4o": {"input_cost_per_token": 1e-6}}`)); err != nil {
		t.Fatal(err)
	}
	if got, _ := r.TokenCost("gpt-4o", rule.Usage{Input: 1000, Output: 1}); got != 1001 || p.Len() != 1 {
		t.Errorf("the next list is not in force: %d", got)
	}
	// Requests that were under way for a model that is gone cost what it did; there are no new ones.
	if got, known := r.TokenCost("claude-sonnet-4-5", rule.Usage{Input: 1000}); got != 3000 || !known {
		t.Errorf("a request that was under way costs %d, %v", got, known)
	}
	if _, err := r.Ask(&rule.Prompt{Model: "claude-sonnet-4-5", Input: 1}, 0); err == nil {
		t.Error("a model that is gone from the list has a price")
	}
}

// Limits in dollars are written as they were read, and end with the day.
func TestMoney(t *testing.T) {
	for text, want := range map[string]rule.Rate{
		"20usd/day":        {N: 20_000_000, Period: 24 * time.Hour, Currency: "usd"},
		"1234.57usd/day":   {N: 1_234_570_000, Period: 24 * time.Hour, Currency: "usd"},
		"0.000001usd/hour": {N: 1, Period: time.Hour, Currency: "usd"},
		"1000000usd/month": {N: 1_000_000_000_000, Currency: "usd"},
		"20eur/day":        {N: 20_000_000, Period: 24 * time.Hour, Currency: "eur"},
		"3000.5jpy/week":   {N: 3_000_500_000, Period: 7 * 24 * time.Hour, Currency: "jpy"},
	} {
		got, err := rule.ParseRate(text)
		if want.Period == 0 {
			want.Period = got.Period
		}
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v as %s, %v", text, got, got, err)
		}
	}
	for _, text := range []string{"$20/1d", "20USD/day", "20.0usd/1d", "20usd/24h", "$20.000000/24h"} {
		if got, err := rule.ParseRate(text); err != nil || got.String() != "20usd/day" {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"usd/day", "$/day", "-5usd/day", "1.usd/day", ".5usd/day", "1.1234567usd/day", "0usd/day", "1e3usd/day", "$5usd/day", "5xyz/day", "5e u/day", "1234567890123usd/day", "20usd"} {
		if got, err := rule.ParseRate(text); err == nil {
			t.Errorf("%s is %s", text, got)
		}
	}
	for text, want := range map[string]string{
		"20$/day":   `"20$" has the sign of a currency; write its code, as in 20usd/day`,
		"0.50$/1d":  `"0.50$" has the sign of a currency; write its code, as in 0.50usd/1d`,
		"€20/day":   `"€20" has the sign of a currency; write its code, as in 20eur/day`,
		"20¥/month": `"20¥" has the sign of a currency; write its code, as in 20jpy/month`,
		"20GBP/1M":  `bad duration "1M"; did you mean "20gbp/1m"?`,
		"1.eur/day": `"1.eur" is not an amount of EUR; write for example 20eur/day or 0.50eur/hour, with at most six digits after the point`,
		"20usd/1M":  `bad duration "1M"; did you mean "20usd/1m"?`,
		"$0.5/Day":  `bad duration "Day"; did you mean "0.5usd/day"?`,
		"20usd/1mo": `bad duration "1mo"; months differ in length; write days, such as 20usd/30d, or 20usd/month for that of the calendar`,
		"20usd/0h":  `0s is not a valid period; write for example 20usd/day`,
		"20/1M":     `bad duration "1M"; did you mean "20/1m"?`,
		"$5$/day":   `"$5$" is not an amount of dollars; write for example 20usd/day or 0.50usd/hour, with at most six digits after the point`,
	} {
		if _, err := rule.ParseRate(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for period, starts := range map[string]string{"day": "", "week": "monday", "month": ""} {
		r := priced(t, nil, `{id: spend, key: user, limit: 1234.57usd/`+period+`, tokens: {price: usd}}`)
		limits, err := r.Compile(r.Quota)
		if err != nil {
			t.Fatal(err)
		}
		same := priced(t, nil, `{id: spend, key: user, limit: 1234570000/`+period+`, zone: UTC, unit: usd}`)
		want, err := same.Compile(same.Quota)
		if err != nil || limits[0].Kind() != want[0].Kind() || limits[0].Capacity() != 1_234_570_000 {
			t.Errorf("%s: %v, want %v (%s)", period, limits[0].Kind(), want[0].Kind(), starts)
		}
		if r.CostUnit() != "usd" {
			t.Errorf("the unit is %q", r.CostUnit())
		}
	}
	// Another quota of such a rule is in dollars, too.
	r := priced(t, nil, spend)
	if q, err := rule.ParseQuota([]string{"20/1d"}, 0, "", ""); err != nil {
		t.Fatal(err)
	} else if _, err := r.Compile(q); err == nil || !strings.Contains(err.Error(), "write for example 20usd/day") {
		t.Error(err)
	}
}
