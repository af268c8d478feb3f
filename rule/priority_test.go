package rule_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirhq/weir"
	"github.com/weirhq/weir/rule"
)

func TestParsePriority(t *testing.T) {
	for _, p := range []rule.Priority{rule.Low, rule.Normal, rule.High, rule.Critical} {
		if got, err := rule.ParsePriority(p.String()); got != p || err != nil {
			t.Errorf("%v was read as %v, %v", p, got, err)
		}
		var again rule.Priority
		text, _ := p.MarshalText()
		if err := again.UnmarshalText(text); again != p || err != nil {
			t.Errorf("%s was read as %v, %v", text, again, err)
		}
	}
	if !(rule.Low < rule.Normal && rule.Normal < rule.High && rule.High < rule.Critical) {
		t.Error("a more important priority is not greater")
	}
	for name, want := range map[string]string{
		"": "critical, high, normal, low", "mediocre": "critical, high, normal, low", "critcal": `"critical"`, "medium": `"normal"`, "High": `"high"`,
	} {
		if _, err := rule.ParsePriority(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %s", name, err, want)
		}
	}
	none := rule.High
	if err := none.UnmarshalText(nil); err != nil || none != 0 || none.String() != "" {
		t.Errorf("no priority: %v, %v", none, err)
	}
}

func TestParseShare(t *testing.T) {
	for text, want := range map[string]rule.Share{"50%": 500, "99.5%": 995, "0.1%": 1, "80.0%": 800, "100%": 0, "100.0%": 0, "7.3%": 73} {
		if got, err := rule.ParseShare(text); got != want || err != nil {
			t.Errorf("%s is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "50", "0%", "0.0%", "100.1%", "101%", "-5%", "+5%", "05%", "5.%", "5.55%", ".5%", "5,5%", "5.+%", "half", "1844674407370955167%", "9223372036854775807%", "99999999999999999999%"} {
		if got, err := rule.ParseShare(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

// What is left is what is beyond the share, rounded up, for any capacity.
func TestLeave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Int64Range(1, 200), rapid.Int64Range(1, weir.MaxUnits)).Draw(t, "n")
		share := rule.Share(rapid.IntRange(1, 1000).Draw(t, "share"))
		limit, err := weir.Limit{Algorithm: weir.FixedWindow, N: n, Period: 1e9}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		c := &rule.Entry{Rule: &rule.Rule{Shares: rule.Shares{rule.Low: share}}}
		leave := c.Leave(limit, rule.Low)
		// leave − 1 < n × (1000 − share) / 1000 ≤ leave
		if beyond := n * int64(1000-share); leave*1000 < beyond || (leave-1)*1000 >= beyond && leave > 0 {
			t.Fatalf("%v of %d leaves %d", share, n, leave)
		}
		for _, p := range []rule.Priority{0, rule.Normal, rule.High, rule.Critical, 99} {
			if left := c.Leave(limit, p); left != 0 {
				t.Fatalf("%d leaves %d", p, left)
			}
		}
		c.Shares = rule.Shares{rule.High: share}
		if high, critical := c.Leave(limit, rule.High), c.Leave(limit, rule.Critical); high != leave || critical != 0 {
			t.Fatalf("high leaves %d, want %d, and critical %d", high, leave, critical)
		}
	})
}

// Sets that were not parsed are checked, too.
func TestInvalidShares(t *testing.T) {
	valid := rule.Rule{ID: "a", Key: []rule.Source{{Kind: rule.User}}, Quota: rule.Quota{Rates: []rule.Rate{{N: 10, Period: 1e9}}}}
	for name, change := range map[string]func(*rule.Rule){
		"order":    func(r *rule.Rule) { r.Shares = rule.Shares{rule.Low: 500, rule.Normal: 400} },
		"unnamed":  func(r *rule.Rule) { r.Shares = rule.Shares{rule.High: 950} },
		"large":    func(r *rule.Rule) { r.Shares = rule.Shares{rule.Low: 1001, rule.Normal: 1001, rule.High: 1001} },
		"negative": func(r *rule.Rule) { r.Shares = rule.Shares{rule.Low: -1} },
		"none":     func(r *rule.Rule) { r.Shares = rule.Shares{0: 500} },
		"priority": func(r *rule.Rule) { r.Priority = rule.Critical + 1 },
		"tier":     func(r *rule.Rule) { r.Tiers = map[string]rule.Quota{"pro": {Unlimited: true, Priority: 9}} },
	} {
		r := valid
		change(&r)
		if _, err := rule.Compile(&rule.Set{Rules: []rule.Rule{r}}, rule.Options{}); err == nil {
			t.Errorf("%s: %+v compiles", name, r)
		}
	}
	valid.Shares = rule.Shares{rule.Low: 500, rule.Normal: 500}
	if _, err := rule.Compile(&rule.Set{Rules: []rule.Rule{valid}}, rule.Options{}); err != nil {
		t.Error(err)
	}
}

// A rule that limits nobody is for its priority, whoever gets one.
func TestPriorityOfUnlimited(t *testing.T) {
	for fields, valid := range map[string]bool{
		"":                 false,
		"priority: high, ": true,
		"tiers: {pro: {limit: unlimited, priority: high}}, ":               true,
		"overrides: {\"user:alice\": {limit: unlimited, priority: low}}, ": true,
	} {
		_, problems := rule.Parse("rules.yaml", []byte("rules: [{id: a, "+fields+"key: user, limit: unlimited}]"))
		if (problems.Err() == nil) != valid {
			t.Errorf("%q: %v", fields, problems.Err())
		}
	}
}

// A rule may give priorities to tiers, to overrides, or only to all.
func TestPriorityOf(t *testing.T) {
	quota := rule.Quota{Rates: []rule.Rate{{N: 5, Period: 1e9}}}
	with := func(p rule.Priority) rule.Quota { q := quota; q.Priority = p; return q }
	byTier := map[string]rule.Quota{"gold": with(rule.High)}
	byClient := map[string]rule.Quota{"user:alice": with(rule.Critical)}
	for name, c := range map[string]struct {
		rule                  rule.Rule
		alice, gold, bob, all rule.Priority
	}{
		"none":      {rule.Rule{}, 0, 0, 0, 0},
		"tiers":     {rule.Rule{Tiers: byTier}, 0, rule.High, 0, rule.High},
		"overrides": {rule.Rule{Overrides: byClient}, rule.Critical, 0, 0, rule.Critical},
		"both":      {rule.Rule{Tiers: byTier, Overrides: byClient, Priority: rule.Low}, rule.Critical, rule.High, rule.Low, rule.Critical},
	} {
		c.rule.ID, c.rule.Key, c.rule.Quota = "r", []rule.Source{{Kind: rule.User}}, quota
		table, err := rule.Compile(&rule.Set{Rules: []rule.Rule{c.rule}}, rule.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e := table.Find("r")
		got := [...]rule.Priority{e.PriorityOf("user:alice", ""), e.PriorityOf("user:bob", "gold"), e.PriorityOf("user:bob", "iron"), e.PriorityOf("user:alice", "gold")}
		if want := [...]rule.Priority{c.alice, c.gold, c.bob, c.all}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
