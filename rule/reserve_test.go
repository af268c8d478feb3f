package rule_test

import (
	"testing"

	"github.com/weirhq/weir/rule"
)

// reserved is what a request reserves for a client without tier or override.
func reserved(t *testing.T, r *rule.Entry, p rule.Prompt) (units, most int64) {
	t.Helper()
	a, err := r.Ask(&p, 0)
	if err != nil {
		t.Fatal(err)
	}
	units, _ = r.Reserve(a, r.Limits("user:u", ""))
	return units, a.Most
}

// No answer is longer than the model can write, for each of the answers that a request asks for.
func TestReserveModel(t *testing.T) {
	list := pricesOf(t, `{"m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "max_output_tokens": "500"},
		"odd": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "max_output_tokens": -5}}`)
	for _, c := range []struct {
		prompt rule.Prompt
		more   string
		want   int64
	}{
		{rule.Prompt{Model: "m", Input: 10, MaxOutput: 1_000_000}, "", 10 + 2*500},
		{rule.Prompt{Model: "m", Input: 10, MaxOutput: 1_000_000, Bounded: 3}, "", 10 + 2*1500},
		{rule.Prompt{Model: "m", Input: 10, MaxOutput: 300}, "", 10 + 2*300},
		{rule.Prompt{Model: "m", Input: 10, Answers: 2}, "", 10 + 2*1000},
		{rule.Prompt{Model: "m", Input: 10, Answers: 2}, ", default_output: 100", 10 + 2*200},
		{rule.Prompt{Model: "m", Input: 10, Answers: 2}, ", default_output: 900", 10 + 2*1000},
		{rule.Prompt{Model: "odd", Input: 10, MaxOutput: 1_000_000}, "", 10 + 2*1_000_000},
		{rule.Prompt{Model: "odd", Input: 10, Answers: 1}, "", 10 + 2*1000},
	} {
		r := priced(t, list, `{id: a, key: user, limit: 1000usd/day, tokens: {price: usd`+c.more+`}}`)
		if got, most := reserved(t, r, c.prompt); got != c.want || most != c.want {
			t.Errorf("%+v%s: %d of %d, want %d", c.prompt, c.more, got, most, c.want)
		}
	}
	// A rule that counts tokens asks the list, too.
	r := priced(t, list, `{id: a, key: user, limit: 1000000/1d, tokens: {}}`)
	if got, _ := reserved(t, r, rule.Prompt{Model: "m", Input: 10, MaxOutput: 1_000_000}); got != 510 {
		t.Error(got)
	}
}

// A request reserves no more than the rule says, but always its prompt. What it may cost stays known.
func TestReserveAtMost(t *testing.T) {
	for _, c := range []struct {
		reserve    string
		prompt     rule.Prompt
		want, most int64
	}{
		{`at_most: 5%`, rule.Prompt{Input: 10, MaxOutput: 1_000_000}, 500, 1_000_010},
		{`at_most: 5%`, rule.Prompt{Input: 10, MaxOutput: 100}, 110, 110},
		{`at_most: 5%`, rule.Prompt{Input: 700, MaxOutput: 100}, 700, 800},
		{`at_most: 5%`, rule.Prompt{Input: 10, Answers: 1}, 500, 1010},
		{`at_most: 0.1%`, rule.Prompt{Input: 1, Answers: 1}, 10, 1001},
		{`at_most: 70`, rule.Prompt{Input: 10, MaxOutput: 100}, 70, 110},
		{`output: 20`, rule.Prompt{Input: 10, MaxOutput: 100}, 30, 110},
		{`output: 20`, rule.Prompt{Input: 10, MaxOutput: 100, Bounded: 2, Answers: 1}, 70, 1110},
		{`output: 2000`, rule.Prompt{Input: 10, MaxOutput: 100}, 110, 110},
		{`output: 1099511627776`, rule.Prompt{Input: 1, MaxOutput: 1 << 62, Answers: 1 << 62}, 1 + 1<<40, 1 + 1<<40},
		{`output: 600, at_most: 5%`, rule.Prompt{Input: 10, MaxOutput: 1000}, 500, 1010},
		{`output: max`, rule.Prompt{Input: 10, MaxOutput: 1000}, 1010, 1010},
	} {
		r := settling(t, `{id: a, key: user, limits: [10000/1m, 2000000/1d], tokens: {reserve: {`+c.reserve+`}}}`)
		if got, most := reserved(t, r, c.prompt); got != c.want || most != c.most {
			t.Errorf("%s: %+v: %d of %d, want %d of %d", c.reserve, c.prompt, got, most, c.want, c.most)
		}
	}
	dear := priced(t, pricesOf(t, priceList), `{id: a, key: user, limit: 20usd/day, tokens: {price: usd, reserve: {at_most: 0.25usd}}}`)
	if got, most := reserved(t, dear, rule.Prompt{Model: "claude-sonnet-4-5", Input: 1000, MaxOutput: 60_000}); got != 250_000 || most != 903_000 {
		t.Error(got, most)
	}
}
